"""`linnet stablehlo`: the StableHLO module of one entry."""

from __future__ import annotations

from pathlib import Path

import click

from linnet.cli.options import NUMERICS, PRESENT, SOURCE, parse_bindings


@click.command()
@click.option("--entry", required=True, metavar="E", help="The entry to generate.")
@click.option("--bind", "bindings", metavar="G=V", multiple=True, help="A generic's value.")
@click.option("--root", metavar="BLOCK", help="The block, where several have the entry.")
@click.option("--numerics", type=click.Choice(NUMERICS), default="fast", show_default=True)
@PRESENT
@click.argument("file", metavar="FILE", type=SOURCE)
def command(
    file: Path,
    entry: str,
    bindings: tuple[str, ...],
    root: str | None,
    numerics: str,
    present: tuple[str, ...],
) -> None:
    """Print the StableHLO module of one entry of FILE.

    FILE may also be a package's folder, a model folder or an installed card's name; the card then
    gives the generics that --bind leaves out. Shapes are static: every dimension of the entry
    itself needs a value too.
    """
    values = parse_bindings(bindings)
    from linnet.cli.target import read_target
    from linnet.jax import stablehlo

    target = read_target(file, root, entry, values, present)
    text = stablehlo(
        target.program,
        target.block,
        entry,
        target.generics,
        sizes=target.sizes,
        numerics=numerics,
        present=target.present,
    )
    click.echo(text)
