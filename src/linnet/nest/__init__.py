"""Nest: model cards, their weights, and models that load by name.

    from linnet import nest
    model = nest.load("smollm2-135m-instruct", backend="torch")

`list`, `show` and `check` read cards and packages and run nothing of them; `pull` fetches weights;
`load` gives a backend's model object; `run_model` is what `linnet run` does.
"""

from __future__ import annotations

import builtins
from pathlib import Path

from linnet.nest.card import Card
from linnet.nest.errors import NEST_CODES, NestError
from linnet.nest.loader import load
from linnet.nest.progress import Progress

__all__ = [
    "NEST_CODES",
    "Card",
    "NestError",
    "Progress",
    "check",
    "list",
    "load",
    "pull",
    "run_model",
    "show",
]


def list() -> builtins.list[Card]:
    """The installed cards, by name."""
    from linnet.nest.find import installed_cards

    return installed_cards()


def show(
    card: str | Path | Card,
    *,
    full: bool = False,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> str:
    """A card as text: what it is, its parameters by part, its state. Needs no weights."""
    from linnet.nest.describe import binding_for, show_lines
    from linnet.nest.find import find_card

    found = find_card(card, cache_dir, progress)
    return "\n".join(show_lines(found, binding_for(found), full))


def check(folder: str | Path) -> None:
    """What a model folder must pass. Raises `CompileError` with every problem found.

    `linnet.nest.describe.check_folder` gives the same as a value.
    """
    from linnet.diagnostics.diagnostic import CompileError
    from linnet.nest.describe import check_folder

    result = check_folder(folder)
    if not result.ok:
        raise CompileError(result.diagnostics)


def pull(
    card: str | Path | Card,
    *,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> builtins.list[Path]:
    """Fetch a card's weights (and tokenizer files) and return the weight files. Those in the cache
    are checked against the card's digests, and fetched again where they were damaged."""
    from linnet.nest.fetch import fetch_text_files, fetch_weights
    from linnet.nest.find import find_card

    progress = progress or Progress()
    found = find_card(card, cache_dir, progress)
    files = fetch_weights(found, cache_dir, progress, verify=True)
    fetch_text_files(found, files, progress)
    return files


def run_model(model: str | Path | Card, prompt: str, **options: object) -> int:
    """What `linnet run` does; the options are those of `linnet.nest.run.run_model`."""
    from linnet.nest.run import run_model as run

    return run(model, prompt, **options)  # type: ignore[arg-type]
