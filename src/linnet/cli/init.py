"""`linnet init`: a new package that checks as it is."""

from __future__ import annotations

import re
from pathlib import Path

import click

from linnet.packages.manifest import MANIFEST_NAME, MAX_NAME
from linnet.packages.names import IDENTIFIER
from linnet.syntax.tokens import KEYWORDS, RESERVED

_MANIFEST = """\
[package]
name = "{name}"
version = "0.1.0"
language = "0.1"

[dependencies]
"""

_LIBRARY = """\
module {name}

use std.nn.activations::{{relu}}
use std.nn.linear::{{Linear}}

/// Two linear layers with a ReLU between them.
pub block Model<In: Dim, Hidden: Dim, Out: Dim, T: Float = f32> {{
    sub first: Linear<In, Hidden, T>
    sub second: Linear<Hidden, Out, T>

    pub entry forward<B: Dim>(x: Tensor[B, In; T]) -> Tensor[B, Out; T] {{
        let hidden = relu(first.forward(x))
        return second.forward(hidden)
    }}
}}
"""


@click.command()
@click.option("--name", help="The package's name; the folder's when left out.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def command(folder: Path, name: str | None) -> None:
    """Make a new package in DIR: its linnet.toml and a first src/lib.linnet."""
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"`{folder}` is not a folder")
    name = _package_name(folder, name)
    manifest, library = folder / MANIFEST_NAME, folder / "src" / "lib.linnet"
    for path in (manifest, library):
        if path.exists():
            raise click.UsageError(f"`{path}` is there already; nothing was changed")
    library.parent.mkdir(parents=True, exist_ok=True)
    library.write_text(_LIBRARY.format(name=name), encoding="utf-8")
    manifest.write_text(_MANIFEST.format(name=name), encoding="utf-8")
    click.echo(f"made the package `{name}`; try `linnet check {folder}`")


def _package_name(folder: Path, name: str | None) -> str:
    found = re.sub(r"\W", "_", folder.resolve().name, flags=re.ASCII) if name is None else name
    taken = found == "std" or found in KEYWORDS or found in RESERVED
    if taken or not IDENTIFIER.match(found) or len(found) > MAX_NAME:
        raise click.UsageError(
            f"`{found}` cannot be a package's name: it takes ASCII letters, digits and `_`, starts"
            " with no digit, and is no word of the language; choose one with --name"
        )
    return found
