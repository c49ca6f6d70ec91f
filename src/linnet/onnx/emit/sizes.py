"""Sizes: numbers where they are known, else scalars worked out from the shapes of the inputs.

Everything here is written into the main graph, once for each size.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.dims import Dim, Symbol
from linnet.dims.dim import Op
from linnet.onnx.emit.graph import GraphBuilder
from linnet.types import DType


class Sizes:
    """What each symbol of the entry is, and values of dimensions made from them."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.symbols: dict[Symbol, ir.Value] = {}  # scalars of i64
        self.made: dict[Dim, ir.Value] = {}

    def read(self, symbol: Symbol, dim: Dim, source: ir.Value, axis: int) -> None:
        """`symbol` is what `dim`, linear in it, shows as an extent of `source`."""
        b = self.builder
        with b.outermost():
            shape = b.node("Shape", [source], DType.I64, f"{symbol.name}/shape", start=axis,
                           end=axis + 1)  # fmt: skip
            value = b.node("Squeeze", [shape, b.integers(0)], DType.I64, symbol.name)
            offset = dim.evaluate({symbol: 0})
            slope = dim.evaluate({symbol: 1}) - offset
            if offset:
                value = b.node("Sub", [value, b.scalar(offset, DType.I64)], DType.I64, symbol.name)
            if slope != 1:
                value = b.node("Div", [value, b.scalar(slope, DType.I64)], DType.I64, symbol.name)
        self.symbols[symbol] = value

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
    """Reads each symbol of `wanted` that an input's shape shows alone; gives those none does."""
    left = list(wanted)
    for symbol in wanted:
        place = _place(symbol, types)
        if place is not None:
            sizes.read(symbol, *place)
            left.remove(symbol)
    return left


def _place(
    symbol: Symbol, types: Sequence[tuple[ir.Value, Sequence[Dim]]]
) -> tuple[Dim, ir.Value, int] | None:
    best: tuple[Dim, ir.Value, int] | None = None
    for value, dims in types:
        for axis, dim in enumerate(dims):
            if dim == Dim.of(symbol):
                return dim, value, axis
            if dim.symbols == {symbol} and best is None and linear(dim, symbol):
                best = dim, value, axis
    return best


def linear(dim: Dim, symbol: Symbol) -> bool:
    """Whether an extent, in which no other symbol stands, gives the symbol's value."""
    if dim.ops:
        return False
    zero, one, two = (dim.evaluate({symbol: k}) for k in (0, 1, 2))
    return one != zero and two - one == one - zero
