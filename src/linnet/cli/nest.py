"""`linnet nest`: the model cards."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linnet.cli.output import show_diagnostics, show_json
from linnet.diagnostics import render_json
from linnet.diagnostics.escape import escape_text

if TYPE_CHECKING:
    from linnet.nest.card import Card

_MAX_TEXT = 2000


@click.group()
def command() -> None:
    """List, show, check and fetch model cards."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_cards(as_json: bool) -> None:
    """The cards that came with this installation."""
    from linnet import nest

    cards = nest.list()
    if as_json:
        show_json([_summary(card) for card in cards])
        return
    width = max((len(card.name) for card in cards), default=0)
    for card in cards:
        click.echo(f"{_plain(card.name):<{width}}  {_plain(card.title)}")


@command.command()
@click.option("--full", is_flag=True, help="Every parameter with its shape.")
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@click.argument("name", metavar="NAME")
def show(name: str, full: bool, as_json: bool) -> None:
    """What a model is. NAME is an installed card, a folder (./x), or owner/name on the Hub."""
    from linnet import nest

    if as_json:
        from linnet.nest.find import find_card

        show_json(_summary(find_card(name)))
        return
    for line in nest.show(name, full=full).split("\n"):
        click.echo(_plain(line))


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, path_type=Path))
def check(folder: Path, as_json: bool) -> int:
    """Check a model folder: its card, source, generics and bindings. Nothing is fetched or run."""
    from linnet.nest.describe import check_folder

    result = check_folder(folder)
    if as_json:
        show_json(render_json(result.diagnostics))
    elif result.diagnostics:
        show_diagnostics(result.diagnostics)
    else:
        click.echo("no problems", err=True)
    return 0 if result.ok else 1


@command.command()
@click.option("--cache-dir", type=click.Path(file_okay=False, path_type=Path), help="For files.")
@click.argument("name", metavar="NAME")
def pull(name: str, cache_dir: Path | None) -> None:
    """Fetch a model's weights, so that it runs offline afterwards; prints where they lie.

    What is there already is checked, and fetched again where it was damaged.
    """
    from linnet import nest

    for path in nest.pull(name, cache_dir=cache_dir):
        click.echo(path)


def _summary(card: Card) -> dict[str, object]:
    return {
        "name": card.name,
        "title": card.title,
        "summary": card.summary,
        "license": card.license,
        "family": card.family,
        "tags": list(card.tags),
        "links": dict(card.links),
        "source": str(card.source_path),
        "root": card.source.root,
        "entry": card.source.entry,
        "generics": dict(card.generics),
        "weights": None if card.weights is None else asdict(card.weights),
    }


def _plain(text: str) -> str:
    return escape_text(text, _MAX_TEXT)
