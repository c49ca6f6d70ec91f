"""`linnet check`: every problem of files and packages."""

from __future__ import annotations

from pathlib import Path

import click

from linnet.cli.output import show_diagnostics, show_json
from linnet.diagnostics import render_json


@click.command()
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document for tools.")
@click.option(
    "--std-root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Use the standard library in this folder.",
)
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, path_type=Path),
)
def command(paths: tuple[Path, ...], strict: bool, as_json: bool, std_root: Path | None) -> int:
    """Check files and packages and all they import.

    A folder stands for every .linnet file under its src, or under itself. Nothing of what is
    checked is run. Exits with 0 when there are no errors (with --strict: no warnings either),
    1 when there are, 2 on misuse.
    """
    from linnet.api import check_paths

    checked = check_paths(paths, std_root)
    diagnostics = checked.diagnostics
    if as_json:
        show_json(render_json(diagnostics))
    elif diagnostics:
        show_diagnostics(diagnostics)
    else:
        count = len(checked.graph.modules)
        click.echo(f"no problems in {count} module{'s' * (count != 1)}", err=True)
    failed = any(strict or each.severity == "error" for each in diagnostics)
    return 1 if failed else 0
