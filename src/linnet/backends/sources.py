"""The text of kernels: generated modules hold the ones they use, so that they stand alone.

Kernels are plain functions in `linnet/backends/kernels` and `linnet/<backend>/kernels`, on the
names that the generated module's header imports and on each other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from linnet.diagnostics import InternalError

_IGNORE = re.compile(r"  # type: ignore\[.*\]$")


@cache
def _kernels(package: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Each kernel's text, decorators included, and the names it uses."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for file in sorted(files(package).iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".py") or file.name.startswith("__"):
            continue
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign):
                continue
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            name = _name(node)
            used = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            body = (_IGNORE.sub("", line) for line in lines[first - 1 : node.end_lineno])
            found[name] = "\n".join(body), used
    return found


def _name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            raise InternalError("backends", "a kernel file holds more than names")


@cache
def kernel_names(*packages: str) -> frozenset[str]:
    """The names of all kernels of these packages, such as `linnet.jax.kernels`."""
    return frozenset().union(*map(_kernels, packages))


def kernel_sections(packages: Iterable[str], wanted: Iterable[str]) -> list[list[str]]:
    """The lines of each of these kernels and of all they use, in the order of their files."""
    kernels = {name: found for each in packages for name, found in _kernels(each).items()}
    needed: set[str] = set()
    stack = list(wanted)
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack.extend(used for used in kernels[name][1] if used in kernels)
    return [text.splitlines() for name, (text, _) in kernels.items() if name in needed]
