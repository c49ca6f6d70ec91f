"""`linnet explain`: which implementation each op call gets, and why."""

from __future__ import annotations

from pathlib import Path

import click

from linnet.cli.options import NUMERICS, parse_bindings


@click.command()
@click.option("--backend", type=click.Choice(["torch"]), default="torch", show_default=True)
@click.option("--entry", metavar="E", help="One entry instead of all.")
@click.option("--bind", "bindings", metavar="G=V", multiple=True, help="A generic's value.")
@click.option("--root", metavar="BLOCK", help="The block, where several have entries.")
@click.option("--numerics", type=click.Choice(NUMERICS), default="fast", show_default=True)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, path_type=Path))
def command(
    file: Path,
    backend: str,
    entry: str | None,
    bindings: tuple[str, ...],
    root: str | None,
    numerics: str,
) -> None:
    """List each op call of FILE, the implementations the backend has, which is chosen and why."""
    values = parse_bindings(bindings)
    from linnet.api import load_program
    from linnet.cli.roots import choose_root, split_bindings
    from linnet.torch import explain

    program = load_program(file)
    block = choose_root(program, root, entry)
    name = None if block is None else block.name
    entries = [entry] if entry else list(program.entries(name))
    generics, sizes = split_bindings(program, block, entries, values)
    text = explain(program, name, entries, generics, sizes=sizes, numerics=numerics)
    click.echo(text, nl=False)
