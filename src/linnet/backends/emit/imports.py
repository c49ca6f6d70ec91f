"""The imports of a generated module: those that its text uses."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Import:
    """`import module`, `import module as alias`, or with `name` `from module import name`."""

    module: str
    name: str = ""
    alias: str = ""

    @property
    def bound(self) -> str:
        """The name that the module's text sees."""
        return self.name or self.alias or self.module


STANDARD = (
    Import("math"),
    Import("collections.abc", "Callable"),
    Import("collections.abc", "Sequence"),
    Import("enum", "IntEnum"),
    Import("functools", "partial"),
    Import("typing", "Any"),
    Import("typing", "NamedTuple"),
)


def names_in(text: str) -> frozenset[str]:
    """The names that Python code reads, annotations among them."""
    return frozenset(n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name))


def import_lines(groups: Iterable[Sequence[Import]], used: Collection[str]) -> list[str]:
    """The imports in use, a blank line between groups."""
    lines: list[str] = []
    for group in groups:
        found = [each for each in group if each.bound in used]
        if found and lines:
            lines.append("")
        for each in found:
            if not each.name:
                lines.append(f"import {each.module}" + f" as {each.alias}" * bool(each.alias))
            elif lines and lines[-1].startswith(f"from {each.module} import "):
                lines[-1] += f", {each.name}"
            else:
                lines.append(f"from {each.module} import {each.name}")
    return lines
