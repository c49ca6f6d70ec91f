"""Functions as text, for people: `linnet inspect --ir`, test failures, reproducers.

Values are numbered afresh in program order, so the text is the same for equal functions. Names
come from strangers' packages: what is no plain identifier is written as a quoted, escaped string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from linnet.dims import Dim
from linnet.ir.core import Function, Generic, Op, Program, Ref, Region, SubVar, Value
from linnet.types import DType, DTypeVar, PackVar, render_arg

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.:$-]{0,200}\Z", re.ASCII)
_LIMIT = 200


def print_program(program: Program | Mapping[str, Function]) -> str:
    """Every function, in the mapping's order, a blank line between two."""
    functions = program.functions if isinstance(program, Program) else program
    return "\n".join(print_function(function) for function in functions.values())


def print_function(function: Function) -> str:
    """One function, its gradient after it."""
    return _Printer().function(function)


def print_region(region: Region) -> str:
    """A region alone; values from outside it are numbered as they are met."""
    printer = _Printer()
    printer.contents(region, 0)
    return "\n".join(printer.lines) + "\n"


def plain(text: str) -> str:
    """A name as it is when it is one, else as an ASCII string literal, cut off when long."""
    if _PLAIN.match(text):
        return text
    return json.dumps(text if len(text) <= _LIMIT else text[:_LIMIT] + "...")


class _Printer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.subs: dict[SubVar, str] = {}

    def name(self, value: Value) -> str:
        """`%3` or `%x.3`; numbers go up in the order of first sight."""
        if value not in self.names:
            number = len(self.names)
            source = value.name if _PLAIN.match(value.name) else ""
            self.names[value] = f"%{source}.{number}" if source else f"%{number}"
        return self.names[value]

    def typed(self, value: Value) -> str:
        return f"{self.name(value)}: {_text(value.type)}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def function(self, function: Function) -> str:
        generics = ", ".join(map(_generic, function.generics))
        params = ", ".join(
            f"{plain(p.name)} {self.typed(p.value)}{_default(p.default)}" for p in function.params
        )
        results = ", ".join(_text(type_) for type_ in function.result_types) or "nothing"
        head = f"{function.kind} {plain(function.name)}"
        self.emit(0, f"{head}{f'<{generics}>' if generics else ''}({params}) -> {results}")
        if function.where:
            self.emit(1, f"where {', '.join(_text(clause) for clause in function.where)}")
        if function.broken:
            self.emit(1, "broken")
        self.lines[-1] += " {"
        self.contents(function.body, 1)
        if function.grad is not None:
            self.emit(0, f"}} grad({', '.join(map(self.typed, function.grad.params))}) {{")
            self.contents(function.grad.body, 1)
        self.emit(0, "}")
        return "\n".join(self.lines) + "\n"

    def contents(self, region: Region, depth: int, word: str = "give") -> None:
        for op in region.ops:
            self.op(op, depth)
        if region.results:
            self.emit(depth, f"{word} {', '.join(map(self.name, region.results))}")

    def op(self, op: Op, depth: int) -> None:
        operands = ", ".join(map(self.name, op.operands))
        attrs = ", ".join(f"{plain(key)} = {self.attr(v)}" for key, v in sorted(op.attrs.items()))
        results = ", ".join(map(self.name, op.results))
        types = ", ".join(_text(value.type) for value in op.results)
        text = f"{results} = " if results else ""
        text += f"{plain(op.kind)}({operands})"
        text += f" [{attrs}]" if attrs else ""
        text += f" : {types}" if types else ""
        self.emit(depth, text)
        for region in op.regions:
            params = ", ".join(map(self.typed, region.params))
            self.lines[-1] += f" ({params}) {{" if params else " {"
            self.contents(region, depth + 1)
            self.emit(depth, "}")

    def attr(self, value: Any) -> str:
        match value:
            case SubVar():
                if value not in self.subs:
                    self.subs[value] = f"{plain(value.name)}${len(self.subs)}"
                return self.subs[value]
            case Ref(root, steps):
                start = "self" if root is None else self.attr(root)
                return ".".join([start, *(plain(str(step)) for step in steps)])
            case bool() | int() | float() | None:
                return repr(value)
            case str():
                return plain(value)
            case tuple() | list():
                return f"({', '.join(map(self.attr, value))}{',' if len(value) == 1 else ''})"
            case Dim() | DType() | DTypeVar() | PackVar():
                return _text(value)
            case Value():
                return self.name(value)
            case _:
                return _text(value)


def _text(value: object) -> str:
    """A type or dimension: only names in it are a stranger's, and those have to be plain."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return json.dumps(text)


def _generic(generic: Generic) -> str:
    star = "*" if isinstance(generic.var, PackVar) else ""
    default = "" if generic.default is None else f" = {_text(render_arg(generic.default))}"
    return f"{star}{plain(generic.name)}: {plain(generic.kind)}{default}"


def _default(value: int | float | bool | str | None) -> str:
    return "" if value is None else f" = {value}"
