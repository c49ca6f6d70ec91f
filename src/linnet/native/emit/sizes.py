"""Dimensions as C++ source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linnet.diagnostics import InternalError
from linnet.dims import Dim, Symbol
from linnet.dims.dim import Atom, Op

_SIZE_BITS = 31  # of a size that an input shows or a caller names


@dataclass(frozen=True, slots=True)
class Size:
    """`text` is an `int64_t` expression, `atomic` when it needs no parentheses."""

    text: str
    constant: int | None
    atomic: bool

    @property
    def factor(self) -> str:
        return self.text if self.atomic else f"({self.text})"


def size_text(dim: Dim, names: Mapping[Symbol, str], where: str) -> Size:
    """The dimension in terms of `names`; `where` is a C++ string for failing divisions."""
    constant = dim.constant
    if constant is not None:
        return Size(_number(constant), constant, constant >= 0)
    parts: list[str] = []
    for monomial, coefficient in sorted(dim.terms.items(), key=lambda t: -len(t[0])):
        text = _term(monomial, abs(coefficient), names, where)
        if not parts:
            parts.append(text if coefficient > 0 else f"-{text}")
        else:
            parts.append(f"{'+' if coefficient > 0 else '-'} {text}")
    text = " ".join(parts)
    return Size(
        text, None, text.replace("_", "").isalnum() or (len(parts) == 1 and text[-1] == ")")
    )


def _term(
    monomial: tuple[Atom, ...], coefficient: int, names: Mapping[Symbol, str], where: str
) -> str:
    factors = [_atom(atom, names, where) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, _number(coefficient))
    if len(factors) == 1:
        return factors[0]
    if coefficient.bit_length() + _SIZE_BITS * len(monomial) > 62:
        return f"product({', '.join(factors)})"
    return " * ".join(factors)


def _atom(atom: Atom, names: Mapping[Symbol, str], where: str) -> str:
    if isinstance(atom, Symbol):
        if atom not in names:
            raise InternalError("native.emit", f"the size {atom} is not known here")
        return names[atom]
    return _operation(atom, names, where)


def _operation(op: Op, names: Mapping[Symbol, str], where: str) -> str:
    args = [size_text(arg, names, where).text for arg in op.args]
    if op.kind in ("min", "max"):
        name = "least" if op.kind == "min" else "most"
        text = args[-1]
        for arg in reversed(args[:-1]):
            text = f"{name}({arg}, {text})"
        return text
    name = "floor_div" if op.kind == "floordiv" else "floor_mod"
    return f"{name}({args[0]}, {args[1]}, {where})"


def _number(value: int) -> str:
    return str(value) if abs(value) < 2**31 else f"int64_t{{{value}}}"
