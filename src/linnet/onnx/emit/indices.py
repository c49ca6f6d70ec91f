"""Indices that the runtime refuses where they are negative.

ONNX's operators count a negative index from the axis's end; in the language it is an error, as one
past the end is. An index that may be negative is therefore sent past every axis's end first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import onnx_ir as ir

from linnet.dims import Dim
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.dtypes import ONNX
from linnet.onnx.emit.held import Held
from linnet.types import DType

Interval = tuple[int, int]

_EXTENTS = (0, 2**31 - 1)  # no axis is longer
# Operators whose result holds only elements of their first input.
_MOVING = frozenset(
    ("Expand", "Gather", "GatherND", "Identity", "Reshape", "Slice", "Squeeze", "Transpose",
     "Unsqueeze")
)  # fmt: skip
_POSITIONS = frozenset(("ArgMax", "ArgMin", "NonZero", "Range", "Shape", "Size", "TopK"))
_INTEGERS = {ONNX[dtype]: dtype for dtype in DType if dtype.is_integer or dtype is DType.BOOL}
_DEPTH = 12  # of operators looked through


def not_wrapping(c: Core, held: Held, extent: Dim) -> ir.Value:
    """The whole tensor of indices along an axis of this extent in `i32` or `i64`, its negative ones
    past every axis's end."""
    value, dtype = c.whole(held), held.dtype
    if dtype not in (DType.I32, DType.I64):
        value, dtype = c.convert(value, dtype, DType.I64), DType.I64
    if extent.constant is not None and c.assumed.within(held, extent - 1):
        return value
    if interval(value)[0] >= 0:
        return value
    below = c.b.once("Less", [value, c.scalar(0, dtype)], DType.BOOL)
    return c.b.once("Where", [below, c.scalar(dtype.integer_range[1], dtype), value], dtype)


def interval(value: ir.Value, depth: int = 0) -> Interval:
    """Bounds of a tensor of integers: its dtype's where nothing else is known."""
    dtype = _INTEGERS.get(value.dtype) if value.dtype is not None else None
    whole = _range(dtype)
    if value.const_value is not None and value.producer() is None:
        array = value.const_value.numpy()
        return (int(array.min()), int(array.max())) if array.size else (0, 0)
    node = value.producer()
    if node is None or dtype is None or depth == _DEPTH:
        return whole
    made = _of_node(node, depth + 1)
    return made if made is not None and whole[0] <= made[0] and made[1] <= whole[1] else whole


def _range(dtype: DType | None) -> Interval:
    if dtype is DType.BOOL:
        return 0, 1
    return DType.I64.integer_range if dtype is None else dtype.integer_range


def _of_node(node: ir.Node, depth: int) -> Interval | None:
    """Bounds of a node's result before it wraps; None where nothing is known."""
    if node.op_type in _POSITIONS:
        return _EXTENTS
    inputs = [v for v in node.inputs if v is not None]
    if node.op_type in _MOVING:
        return interval(inputs[0], depth)
    if node.op_type == "Cast":
        known = inputs[0].dtype in _INTEGERS
        return interval(inputs[0], depth) if known else None
    if node.op_type == "Where":
        inputs = inputs[1:]
    combine = _COMBINED.get(node.op_type)
    return None if combine is None else combine([interval(v, depth) for v in inputs])


def _hull(given: Sequence[Interval]) -> Interval:
    return min(low for low, _ in given), max(high for _, high in given)


def _sum(given: Sequence[Interval]) -> Interval:
    return sum(low for low, _ in given), sum(high for _, high in given)


def _product(given: Sequence[Interval]) -> Interval | None:
    """Of factors that are not negative."""
    if any(low < 0 for low, _ in given):
        return None
    return prod(low for low, _ in given), prod(high for _, high in given)


def _quotient(given: Sequence[Interval]) -> Interval | None:
    (low, high), (least, _) = given
    return (0, high) if low >= 0 and least > 0 else None


def _difference(given: Sequence[Interval]) -> Interval:
    (low, high), (least, most) = given
    return low - most, high - least


def _smaller(given: Sequence[Interval]) -> Interval:
    return min(low for low, _ in given), min(high for _, high in given)


def _larger(given: Sequence[Interval]) -> Interval:
    return max(low for low, _ in given), max(high for _, high in given)


_COMBINED: dict[str, Callable[[Sequence[Interval]], Interval | None]] = {
    "Where": _hull, "Concat": _hull, "Add": _sum, "Sub": _difference, "Mul": _product,
    "Div": _quotient, "Min": _smaller, "Max": _larger,
}  # fmt: skip
