"""Dimensions as Python source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linnet.backends.expr import ADD, ATOM
from linnet.diagnostics import InternalError
from linnet.dims import Dim, Symbol
from linnet.ir import Param
from linnet.types import TensorType

SIZE_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Size:
    """`text` at precedence `prec`; `names` are the variables in it."""

    text: str
    prec: int
    names: frozenset[str]
    constant: int | None


def size_of(dim: Dim, names: Mapping[Symbol, str]) -> Size:
    """The dimension in terms of the variables that hold its symbols."""
    constant = dim.constant
    if constant is not None:
        return Size(str(constant), ATOM, frozenset(), constant)
    for symbol in dim.symbols:
        if symbol not in names:
            what = f"the size {symbol} in {dim} is not known here"
            raise InternalError("backends.emit", what)
    text = dim.render(lambda s: names[s], floordiv="//")
    used = frozenset(names[s] for s in dim.symbols)
    return Size(text, ATOM if text.isidentifier() else ADD, used, None)


def tuple_text(parts: Sequence[str]) -> str:
    """A Python tuple."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def dim_bounds(dim: Dim) -> tuple[int, int]:
    """What a size lies between, each size that an input shows being at most 2**31 - 1."""
    low = high = 0
    for monomial, coefficient in dim.terms.items():
        most = abs(coefficient) * SIZE_LIMIT ** len(monomial)
        if monomial and any(not isinstance(atom, Symbol) for atom in monomial):
            low, high = low - most, high + most
        elif not monomial:
            low, high = low + coefficient, high + coefficient
        elif coefficient > 0:
            high += most
        else:
            low -= most
    return low, high


def shown_sizes(params: Sequence[Param]) -> dict[Symbol, tuple[int, int]]:
    """Each size that a tensor parameter shows: `(parameter, axis)`."""
    found: dict[Symbol, tuple[int, int]] = {}
    for k, param in enumerate(params):
        if not isinstance(param.type, TensorType):
            continue
        for axis, dim in enumerate(param.type.dims):
            (symbol,) = dim.symbols if len(dim.symbols) == 1 else (None,)
            if symbol is not None and dim.terms == {(symbol,): 1}:
                found.setdefault(symbol, (k, axis))
    return found


def size_lines(
    wanted: Mapping[Symbol, str], shown: Mapping[Symbol, tuple[int, int]],
    params: Sequence[Param], names: Sequence[str],
) -> list[str]:  # fmt: skip
    """`B, S = tokens.shape[:2]` for the sizes in `wanted`, each under its variable's name;
    `names` are the parameters' own."""
    found: dict[int, dict[int, str]] = {}
    for symbol, (k, axis) in shown.items():
        if symbol in wanted:
            found.setdefault(k, {})[axis] = wanted[symbol]
    lines = []
    for k, axes in sorted(found.items()):
        type_ = params[k].type
        rank = len(type_.shape) if isinstance(type_, TensorType) else 0
        if len(axes) == 1:
            ((axis, name),) = axes.items()
            lines.append(f"    {name} = {names[k]}.shape[{axis}]")
            continue
        last = max(axes)
        targets = ", ".join(axes.get(axis, "_") for axis in range(last + 1))
        part = "" if last + 1 == rank else f"[:{last + 1}]"
        lines.append(f"    {targets} = {names[k]}.shape{part}")
    return lines
