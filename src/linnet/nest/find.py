"""From what a user names to a card: an installed name, a folder, or a repository on the Hub."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import NoReturn

from linnet.nest.card import CARD_NAME, Card
from linnet.nest.card_reader import REPO
from linnet.nest.errors import NestError, fail, quoted
from linnet.nest.progress import Progress
from linnet.packages.resources import models_root


def installed_cards() -> list[Card]:
    """Every card that came with this installation, by name; broken ones are left out."""
    root = models_root()
    if not root.is_dir():
        return []
    cards = []
    for folder in sorted(root.iterdir()):
        if (folder / CARD_NAME).is_file():
            try:
                cards.append(Card.read(folder))
            except NestError:
                continue
    return cards


def find_card(
    card: str | Path | Card,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> Card:
    """The card a user means. Raises `NestError` (E5020 to E5022).

    A plain name is an installed card; with a separator it is a folder, else a repository.
    """
    if isinstance(card, Card):
        return card
    if isinstance(card, Path):
        return Card.read(card)
    separators = {"/", os.sep, os.altsep or "/"}
    if not any(mark in card for mark in separators) and card not in (".", ".."):
        return _installed(card)
    if "\0" not in card and Path(card).is_dir():
        return Card.read(card)
    if not REPO.fullmatch(card):
        fail("E5021", f"there is no folder {quoted(card)}")
    from linnet.nest.hub import fetch_card

    return fetch_card(card, cache_dir, progress or Progress())


def _installed(name: str) -> Card:
    root = models_root()
    names = []
    if root.is_dir():
        names = sorted(f.name for f in root.iterdir() if (f / CARD_NAME).is_file())
    if name not in names:
        _unknown(name, names)
    return Card.read(root / name)


def _unknown(name: str, names: list[str]) -> NoReturn:
    here = (Path(name) / CARD_NAME).is_file() if "\0" not in name else False
    near = difflib.get_close_matches(name, names, n=1)
    help = f"the folder of that name is given as ./{name}" if here else None
    if help is None and near:
        help = f"did you mean {quoted(near[0])}?"
    known = ", ".join(names) or "none"
    fail(
        "E5021",
        f"no card {quoted(name)} is installed",
        notes=(f"installed: {known}",),
        help=help or "`linnet nest list` shows the cards; a folder is given with a separator",
    )
