"""Options that several commands take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from linnet.packages.names import IDENTIFIER
from linnet.packages.resources import models_root

WEIGHT_FORMATS = ("f32", "bf16", "int8", "int8_group", "int4", "int4_group64")
_NUMERICS = ("exact", "equivalent", "fast")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_INTEGER = re.compile(r"-?[0-9](?:_?[0-9]){0,17}\Z")
Bound = int | str | tuple[int, ...]


class SourcePath(click.Path):
    """A file or folder that is there, or an installed card's name, which stands for its folder."""

    def __init__(self) -> None:
        super().__init__(exists=True, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, str) and _PLAIN_NAME.match(value) and not Path(value).exists():
            folder = models_root() / value
            if (folder / "nest.toml").is_file():
                return folder
        return super().convert(value, param, ctx)


SOURCE = SourcePath()
BIND = click.option("--bind", "bindings", metavar="G=V", multiple=True, help="A generic's value.")
ROOT = click.option("--root", metavar="BLOCK", help="The block, where several have entries.")
NUMERICS = click.option(
    "--numerics", type=click.Choice(_NUMERICS), default="fast", show_default=True
)
PRESENT = click.option(
    "--present", metavar="PATH", multiple=True,
    help="An optional parameter that is there, such as layers.{i}.attention.q_norm.weight; of a "
    "model folder those that its bindings name are without saying.",
)  # fmt: skip


def parse_bindings(texts: Iterable[str]) -> dict[str, Bound]:
    """`NAME=VALUE` texts as a dict; a value is an `int`, the name of a dtype or, for a pack, a list
    of sizes: `2,3`, `2,` for one of them, `,` for none.

    Raises misuse for another form and for one name twice.
    """
    found: dict[str, Bound] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not IDENTIFIER.match(name):
            _fail(f"`{text}` is not of the form NAME=VALUE, such as H=64 or T=f32")
        if name in found:
            _fail(f"`{name}` is given twice")
        if _INTEGER.match(value):
            found[name] = int(value)
        elif IDENTIFIER.match(value):
            found[name] = value
        elif "," in value:
            found[name] = _sizes(text, value)
        else:
            _fail(f"the value of `{text}` is no size, no dtype and no list such as 2,3")
    return found


def _sizes(text: str, value: str) -> tuple[int, ...]:
    items = value.removesuffix(",").split(",") if value != "," else []
    if not all(map(_INTEGER.match, items)):
        _fail(f"the value of `{text}` is no list of sizes, such as S=2,3 (S=2, for a single one)")
    return tuple(map(int, items))


def _fail(message: str) -> None:
    raise click.BadParameter(message, param_hint="--bind")
