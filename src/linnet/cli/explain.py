"""`linnet explain`: which implementation each op call gets, and why."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from linnet.cli.options import BIND, NUMERICS, PRESENT, ROOT, SOURCE, parse_bindings
from linnet.diagnostics.escape import escape_text

# As `linnet run` calls them, and the frameworks' names: `onnx` for what an exported file holds.
BACKENDS = ("torch", "jax", "jax_source", "jax_model", "onnx", "onnx_model", "native")


@click.command()
@click.option(
    "--backend", type=click.Choice(BACKENDS),
    help="Default: torch where it is installed, else native.",
)  # fmt: skip
@click.option("--device", default="cpu", show_default=True, help="Such as cpu or cuda.")
@click.option("--entry", metavar="E", help="One entry instead of all.")
@BIND
@ROOT
@NUMERICS
@PRESENT
@click.argument("file", metavar="FILE", type=SOURCE)
def command(
    file: Path,
    backend: str | None,
    device: str,
    entry: str | None,
    bindings: tuple[str, ...],
    root: str | None,
    numerics: str,
    present: tuple[str, ...],
) -> None:
    """List each op call of FILE, the implementations the backend has, which is chosen and why;
    then what the compiler's passes did, and where.

    FILE may also be a package's folder, a model folder or an installed card's name; the card then
    gives the generics that --bind leaves out.
    """
    values = parse_bindings(bindings)
    from linnet.cli.decisions import describe, describe_notes, op_calls
    from linnet.cli.target import read_target

    if backend is None:
        backend = "torch" if find_spec("torch") is not None else "native"
    target = read_target(file, root, entry, values, present)
    calls, notes = op_calls(target, numerics, device, backend)
    for line in (*describe(calls), *describe_notes(notes)):
        click.echo(escape_text(line, 2000))
