"""Names and text from Linnet sources, made safe inside generated Python.

A source may call a value `lambda`, `torch` or `int`, a member `__class__`, and quote any character
in a comment. Nothing here ever lets such a name mean something else in the generated module, nor
such a character end a comment or a string.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import namedtuple
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from linnet.diagnostics.escape import escape_text

_KEYWORDS = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist)
_BUILTINS = frozenset(dir(builtins))

RESERVED = _KEYWORDS | _BUILTINS

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None


def attribute(name: str) -> str:
    """The attribute of a block object that holds member `name`; different for different names.

    Keywords get a trailing underscore (and so do keywords that have one already), names with two
    leading underscores an `m` in front.
    """
    stem = name.rstrip("_")
    if stem in _KEYWORDS:
        return f"{name}_"
    if name.lstrip("m").startswith("__"):
        return f"m{name}"
    return name


def field(name: str, taken: Iterable[str] = ()) -> str:
    """A field of a `NamedTuple`, which allows no keyword and no leading underscore."""
    safe = attribute(name)
    if safe.startswith("_"):
        safe = f"f{safe}"
    used = set(taken)
    while safe in used:
        safe = f"{safe}_"
    return safe


@cache
def record(name: str, fields: tuple[str, ...]) -> Callable[..., Any]:
    """The class of named tuples for a struct of this name with these fields, whatever they are
    called; the fields keep their order."""
    safe: list[str] = []
    for each in fields:
        safe.append(field(each, safe))
    return namedtuple(Names().fresh(name), safe)


class Names:
    """Hands out names that are unique in one scope. `outer` are names the scope can see."""

    def __init__(self, outer: Iterable[str] = ()) -> None:
        self._outer = RESERVED.union(outer)
        self._taken = set(self._outer)
        self._next: dict[str, int] = {}

    def inner(self) -> Names:
        """The names of a scope inside this one, which hide none of it."""
        return Names(self._taken)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or it with a number when it is taken or cannot be used."""
        base = wanted if is_identifier(wanted) else re.sub(r"\W", "_", wanted, flags=re.ASCII)
        if not is_identifier(base) or base.startswith("__") or set(base) == {"_"}:
            base = f"value{base}" if base.strip("_") else "value"
        if base not in self._taken:
            self._taken.add(base)
            return base
        if base in self._outer and f"{base}_" not in self._taken:
            self._taken.add(f"{base}_")
            return f"{base}_"
        stem = base.rstrip("_") if base in self._outer else base
        number = self._next.get(stem, 2)
        while f"{stem}_{number}" in self._taken:
            number += 1
        self._next[stem] = number + 1
        self._taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"


def comment(text: str, limit: int = 160) -> str:
    """`text` for the rest of a `#` comment: on one line, every control character escaped."""
    return escape_text(text, limit)


def quoted(text: str) -> str:
    """A Python string literal; ASCII only, so that no reader sees another line break in it."""
    return ascii(text)
