"""`linnet torch`: the PyTorch source of one entry."""

from __future__ import annotations

from pathlib import Path

import click

from linnet.cli.options import NUMERICS, parse_bindings


@click.command()
@click.option("--entry", required=True, metavar="E", help="The entry to generate.")
@click.option("--bind", "bindings", metavar="G=V", multiple=True, help="A generic's value.")
@click.option("--root", metavar="BLOCK", help="The block, where several have the entry.")
@click.option("--numerics", type=click.Choice(NUMERICS), default="fast", show_default=True)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, path_type=Path))
def command(
    file: Path, entry: str, bindings: tuple[str, ...], root: str | None, numerics: str
) -> None:
    """Print the Python source that PyTorch runs for one entry of FILE.

    Every generic of the block is given by --bind; those of the entry itself stay symbolic when
    they are left out.
    """
    values = parse_bindings(bindings)
    from linnet.api import load_program
    from linnet.cli.roots import choose_root, split_bindings
    from linnet.torch import generate_source

    program = load_program(file)
    block = choose_root(program, root, entry)
    generics, sizes = split_bindings(program, block, [entry], values)
    name = None if block is None else block.name
    text = generate_source(program, name, entry, generics, sizes=sizes, numerics=numerics)
    click.echo(text, nl=False)
