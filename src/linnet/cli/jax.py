"""`linnet jax`: the JAX source of one entry."""

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
    """Print the Python source that JAX runs for one entry of FILE.

    FILE may also be a package's folder, a model folder or an installed card's name; the card then
    gives the generics that --bind leaves out. Dimensions of the entry itself stay symbolic when
    they are left out.
    """
    values = parse_bindings(bindings)
    from linnet.cli.target import read_target
    from linnet.jax import generate_source

    target = read_target(file, root, entry, values, present)
    text = generate_source(
        target.program,
        target.block,
        entry,
        target.generics,
        sizes=target.sizes,
        numerics=numerics,
        present=target.present,
    )
    click.echo(text, nl=False)
