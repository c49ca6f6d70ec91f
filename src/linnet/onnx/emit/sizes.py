"""Sizes: numbers where they are known, else scalars worked out from the shapes of the inputs.

Everything here is written into the main graph, once for each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.dims import Dim, Symbol
from linnet.dims.dim import Op
from linnet.onnx.emit.graph import GraphBuilder
from linnet.types import DType, Subst


class Sizes:
    """What each symbol of the entry is, and values of dimensions made from them."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.symbols: dict[Symbol, ir.Value] = {}  # scalars of i64
        self.made: dict[Dim, ir.Value] = {}

    def read(self, symbol: Symbol, line: Line, source: ir.Value, axis: int) -> None:
        """`symbol` is what an extent of `source`, a line in it, shows."""
        b = self.builder
        with b.outermost():
            shape = b.node("Shape", [source], DType.I64, f"{symbol.name}/shape", start=axis,
                           end=axis + 1)  # fmt: skip
            value = b.node("Squeeze", [shape, b.integers(0)], DType.I64, symbol.name)
            if line.offset.constant != 0:
                value = b.node("Sub", [value, self.scalar(line.offset)], DType.I64, symbol.name)
            if line.slope.constant != 1:
                value = b.node("Div", [value, self._divisor(line.slope)], DType.I64, symbol.name)
        self.symbols[symbol] = value

    def _divisor(self, slope: Dim) -> ir.Value:
        """The slope; where it is 0, any size is as good as another."""
        value = self.scalar(slope)
        if slope.constant is not None:
            return value
        one = self.builder.scalar(1, DType.I64)
        return self.builder.node("Max", [value, one], DType.I64, "divisor")

    def scalar(self, dim: Dim) -> ir.Value:
        """The size as a scalar of `i64`."""
        b = self.builder
        if dim.constant is not None:
            return b.scalar(dim.constant, DType.I64)
        if dim not in self.made:
            with b.outermost(), b.at("sizes"):
                self.made[dim] = self._value(dim)
        return self.made[dim]

    def _value(self, dim: Dim) -> ir.Value:
        b = self.builder
        total: ir.Value | None = None
        for monomial, coefficient in dim.terms.items():
            factors = [self._atom(atom) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, b.scalar(coefficient, DType.I64))
            product = factors[0]
            for factor in factors[1:]:
                product = b.node("Mul", [product, factor], DType.I64, str(dim))
            total = product if total is None else b.node(
                "Add", [total, product], DType.I64, str(dim))  # fmt: skip
        if total is None:
            raise InternalError("onnx.emit", f"the size {dim} has no terms")
        return total

    def _atom(self, atom: Symbol | Op) -> ir.Value:
        b = self.builder
        if isinstance(atom, Symbol):
            if atom not in self.symbols:
                raise InternalError("onnx.emit", f"the size {atom} is not known here")
            return self.symbols[atom]
        args = [self.scalar(arg) for arg in atom.args]
        if atom.kind in ("min", "max"):
            return b.node("Min" if atom.kind == "min" else "Max", args, DType.I64, atom.kind)
        # Sizes and divisors are never negative, where truncating is flooring.
        quotient = b.node("Div", args, DType.I64, "floordiv")
        if atom.kind == "floordiv":
            return quotient
        return b.node("Sub", [args[0], b.node("Mul", [quotient, args[1]], DType.I64)], DType.I64,
                      "mod")  # fmt: skip

    def vector(self, dims: Sequence[Dim | int]) -> ir.Value:
        """Several sizes as a list of `i64`, for Reshape, Expand, Slice and the like."""
        b = self.builder
        plain = [d if isinstance(d, int) else d.constant for d in dims]
        known = [p for p in plain if p is not None]
        if len(known) == len(plain):
            return b.integers(*known)
        with b.outermost(), b.at("sizes"):
            key = ("vector", tuple(dims))
            found: ir.Value | None = b.recall(key)
            if found is None:
                parts = [self._piece(d) for d in dims]
                found = parts[0] if len(parts) == 1 else b.node(
                    "Concat", parts, DType.I64, "shape", axis=0)  # fmt: skip
                b.remember(key, found)
        return found

    def _piece(self, dim: Dim | int) -> ir.Value:
        b = self.builder
        constant = dim if isinstance(dim, int) else dim.constant
        if constant is not None:
            return b.integers(constant)
        assert isinstance(dim, Dim)
        return b.once("Reshape", [self.scalar(dim), b.integers(1)], DType.I64)

    def target(self, dims: Sequence[Dim]) -> ir.Value:
        """A shape to reshape to: one unknown extent is left for the operator to find."""
        unknown = [k for k, d in enumerate(dims) if d.constant is None]
        rest = [d.constant for d in dims if d.constant is not None]
        if len(unknown) == 1 and all(rest):
            return self.builder.integers(*(-1 if d.constant is None else d.constant for d in dims))
        return self.vector(dims)


def shape_of(dims: Sequence[Dim]) -> ir.Shape:
    """A shape as the model's types say it: unknown extents by their names."""
    return ir.Shape([str(d) if d.constant is None else d.constant for d in dims])


def shown(
    types: Sequence[tuple[ir.Value, Sequence[Dim]]], wanted: Sequence[Symbol], sizes: Sizes
) -> list[Symbol]:
    """Reads each symbol of `wanted` that the inputs' shapes give; gives those they don't."""
    found = solutions([dims for _, dims in types], wanted)
    for symbol, place in found.items():
        sizes.read(symbol, place.line, types[place.input][0], place.axis)
    return [symbol for symbol in wanted if symbol not in found]


@dataclass(frozen=True, slots=True)
class Line:
    """An extent as `slope * symbol + offset`, these two without the symbol."""

    slope: Dim
    offset: Dim


@dataclass(frozen=True, slots=True)
class Place:
    """The axis of an input whose extent gives a symbol once those in `line` are known."""

    line: Line
    input: int
    axis: int


def solutions(
    shapes: Sequence[Sequence[Dim]], wanted: Sequence[Symbol], *, plain: bool = False
) -> dict[Symbol, Place]:
    """Where each symbol of `wanted` can be read off, in an order in which each needs only those
    before it; without those that no extent gives. `plain` leaves out what a size of 0 hides: the
    factors of a product."""
    found: dict[Symbol, Place] = {}
    left = list(wanted)
    while True:
        made = {s: p for s in left if (p := _place(s, shapes, set(left), plain)) is not None}
        if not made:
            return found
        found.update(made)
        left = [symbol for symbol in left if symbol not in made]


def _place(
    symbol: Symbol, shapes: Sequence[Sequence[Dim]], unknown: set[Symbol], plain: bool
) -> Place | None:
    """The simplest extent in which the symbol alone is unknown."""
    best: tuple[tuple[bool, int], Place] | None = None
    for number, dims in enumerate(shapes):
        for axis, dim in enumerate(dims):
            rank = dim != Dim.of(symbol), len(dim.symbols)
            if dim.symbols & unknown != {symbol} or (best is not None and best[0] <= rank):
                continue
            line = _line(dim, symbol)
            if line is not None and not (plain and line.slope.constant is None):
                best = rank, Place(line, number, axis)
    return None if best is None else best[1]


def _line(dim: Dim, symbol: Symbol) -> Line | None:
    offset = Subst.of({symbol: Dim.of(0)}).dim(dim)
    slope = Subst.of({symbol: Dim.of(1)}).dim(dim) - offset
    straight = slope.constant != 0 and slope * Dim.of(symbol) + offset == dim
    return Line(slope, offset) if straight else None
