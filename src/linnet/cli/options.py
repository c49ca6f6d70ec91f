"""Options that several commands take."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from linnet.packages.names import IDENTIFIER

NUMERICS = ("exact", "equivalent", "fast")
_INTEGER = re.compile(r"-?[0-9](?:_?[0-9]){0,17}\Z")


def parse_bindings(texts: Iterable[str]) -> dict[str, int | str]:
    """`NAME=VALUE` texts as a dict; a value is an `int` or the name of a dtype.

    Raises misuse for another form and for one name twice.
    """
    found: dict[str, int | str] = {}
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
        else:
            _fail(f"the value of `{text}` is neither an integer nor a dtype")
    return found


def _fail(message: str) -> None:
    raise click.BadParameter(message, param_hint="--bind")
