"""What every lowering is written against: forms of held values, conversions, basic operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from linnet.dims import Dim
from linnet.onnx.emit.assumptions import Assumptions
from linnet.onnx.emit.dtypes import ONNX, carrier
from linnet.onnx.emit.graph import GraphBuilder
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.sizes import Sizes
from linnet.types import DType

ONE = Dim.of(1)


class Core:
    """Writes operators on held values into a graph."""

    def __init__(
        self, builder: GraphBuilder, exact: bool, microsoft: bool = False,
        assumed: Assumptions | None = None,
    ) -> None:  # fmt: skip
        self.b = builder
        self.sizes = Sizes(builder)
        self.exact = exact
        self.microsoft = microsoft  # whether ONNX Runtime's own operators may be used
        self.assumed = assumed or Assumptions()

    # --- values ---------------------------------------------------------------------------------

    def value(self, held: Held) -> ir.Value:
        """The held tensor as it lies, perhaps smaller than its type."""
        if held.const is not None:
            return self.b.scalar(held.const, held.dtype)
        assert held.value is not None
        return held.value

    def whole(self, held: Held) -> ir.Value:
        """The tensor with every element."""
        value = self.value(held)
        if held.is_whole or (not held.dims and held.const is not None):
            return value
        if held.const is None and any(d.constant == 0 for d in held.dims):
            # The runtime takes an Expand of an axis of 1 to one of 0 for one that does nothing.
            value = self.b.scalar(0, held.dtype)
        kernel = carrier("expand", held.dtype)
        wide = self.convert(value, held.dtype, kernel)
        full = self.b.once("Expand", [wide, self.sizes.vector(held.dims)], kernel)
        return self.convert(full, kernel, held.dtype)

    def wholly(self, held: Held) -> Held:
        return Held.whole(self.whole(held), held.dtype, held.dims)

    def convert(self, value: ir.Value, source: DType, target: DType) -> ir.Value:
        """A plain cast, made once: exact when widening, wrapping between integers."""
        if source is target:
            return value
        if id(value) in self.b.fixed:
            with self.b.outermost():
                return self.b.once("Cast", [value], target, to=ONNX[target].value)
        return self.b.once("Cast", [value], target, to=ONNX[target].value)

    # --- elementwise ----------------------------------------------------------------------------

    def apply(
        self, op: str, group: str, helds: Sequence[Held], dims: tuple[Dim, ...],
        result: DType | None = None, hint: str = "", **attrs: Any,
    ) -> Held:  # fmt: skip
        """An elementwise operator on operands of one dtype, through their carrier."""
        dtype = helds[0].dtype
        kernel = carrier(group, dtype)
        inputs = [self.in_dtype(h, kernel) for h in helds]
        made = self.b.node(op, inputs, result or kernel, hint, **attrs)
        if result is None:
            made = self.convert(made, kernel, dtype)
        return self.like(made, result or dtype, dims, helds)

    def in_dtype(self, held: Held, dtype: DType) -> ir.Value:
        """The held tensor in a dtype that holds its values (or its bits)."""
        if held.dtype is dtype:
            return self.value(held)
        if held.const is not None and not held.dtype.is_integer:
            return self.convert(self.value(held), held.dtype, dtype)
        if held.const is not None:
            low, high = dtype.integer_range if dtype.is_integer else (0, 0)
            if dtype.is_float or low <= held.const <= high:
                return self.b.scalar(held.const, dtype)
        return self.convert(self.value(held), held.dtype, dtype)

    def like(
        self, value: ir.Value, dtype: DType, dims: tuple[Dim, ...], helds: Sequence[Held]
    ) -> Held:
        """An elementwise result, held as its operands are."""
        rank = max((h.rank for h in helds), default=0)
        unit = frozenset(p for p in range(1, rank + 1) if not any(h.has(p) for h in helds))
        return Held(value, dtype, dims, rank, unit)

    # --- small helpers --------------------------------------------------------------------------

    def scalar(self, number: int | float | bool, dtype: DType) -> ir.Value:
        return self.b.scalar(number, dtype)

    def reshape(
        self, value: ir.Value, dtype: DType, dims: Sequence[Dim], hint: str = ""
    ) -> ir.Value:
        return self.b.node("Reshape", [value, self.sizes.target(dims)], dtype, hint, allowzero=1)

    def transpose(
        self, value: ir.Value, dtype: DType, order: Sequence[int], hint: str = ""
    ) -> ir.Value:
        if list(order) == list(range(len(order))):
            return value
        return self.b.once("Transpose", [value], dtype, perm=tuple(order)) if not hint else (
            self.b.node("Transpose", [value], dtype, hint, perm=tuple(order)))  # fmt: skip

    def where(self, condition: ir.Value, a: ir.Value, b: ir.Value, dtype: DType) -> ir.Value:
        """`Where` on values of one dtype, through its carrier; bits are kept."""
        kernel = carrier("where", dtype)
        a, b = self.convert(a, dtype, kernel), self.convert(b, dtype, kernel)
        return self.convert(self.b.node("Where", [condition, a, b], kernel), kernel, dtype)

    def placed(self, held: Held, places: Sequence[int], dims: tuple[Dim, ...]) -> Held:
        """A broadcast: operand axis `i` is result axis `places[i]`; nothing is repeated yet."""
        if held.const is not None:
            return held.reshaped(dims)
        n, m = len(dims), len(held.dims)
        physical = [m - p for p in range(held.rank, 0, -1)]  # operand axes that exist
        kept = [places[axis] for axis in physical]
        rank = n - kept[0] if kept else 0
        unit: set[int] = set()
        inserted: list[int] = []
        for axis in range(n - rank, n):
            if axis not in kept:
                inserted.append(axis - (n - rank))
                unit.add(n - axis)
                continue
            source = physical[kept.index(axis)]
            narrow = held.dims[source] == ONE and dims[axis] != ONE
            if narrow or not held.has(m - source):
                unit.add(n - axis)
        value = self.value(held)
        if inserted:
            axes = self.b.integers(*inserted)
            value = self.b.once("Unsqueeze", [value, axes], held.dtype)
        return replace(held, value=value, dims=dims, rank=rank, unit=frozenset(unit))
