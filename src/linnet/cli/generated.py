"""The commands that print what one backend runs for an entry: alike but for the backend."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from linnet.cli.options import BIND, NUMERICS, PRESENT, ROOT, SOURCE, parse_bindings

_FILES = (
    "FILE may also be a package's folder, a model folder or an installed card's name; the card "
    "then gives the generics that --bind leaves out."
)
_SYMBOLIC = "Dimensions of the entry itself stay symbolic when they are left out."


def generated_command(
    what: str, package: str, function: str = "generate_source", dimensions: str = _SYMBOLIC
) -> click.Command:
    """A command that prints `what`, the text that `function` of a backend's `package` gives; the
    package is imported when the command runs."""

    @click.command("generated", help=f"Print {what} of FILE.\n\n{_FILES} {dimensions}")
    @click.option("--entry", required=True, metavar="E", help="The entry to generate.")
    @BIND
    @ROOT
    @NUMERICS
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
        values = parse_bindings(bindings)
        from linnet.cli.target import read_target

        generate = getattr(import_module(package), function)
        target = read_target(file, root, entry, values, present)
        text: str = generate(
            target.program,
            target.block,
            entry,
            target.generics,
            sizes=target.sizes,
            numerics=numerics,
            present=target.present,
        )
        click.echo(text, nl=not text.endswith("\n"))

    return command
