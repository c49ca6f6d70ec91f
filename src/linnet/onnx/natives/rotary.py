"""Rotary positions.

`RotaryEmbedding` takes a table of half a head's width, the op one of the whole width whose halves
need not be equal. Where they are seen to be, because the table is a concatenation of one value with
itself, or a constant, or made from either element by element, the operator gets one half; else the
body runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from linnet.backends.predicates import every, narrow
from linnet.dims import Dim
from linnet.ir import Op
from linnet.onnx.emit import elementwise, views
from linnet.onnx.emit.dtypes import ONNX
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.trace import Frame, Tracer
from linnet.onnx.natives.model import (
    Case,
    Kernel,
    Native,
    needs,
    operands,
    rounded,
)
from linnet.types import DType

_ELEMENTWISE = frozenset({"Cast", "Cos", "Sin", "Neg", "Identity"})


def half(t: Tracer, value: ir.Value, dtype: DType, rank: int | None) -> ir.Value | None:
    """The first half of the last axis of a value of `rank`, where the second is known equal."""
    key = ("half", id(value))
    found: tuple[ir.Value, ir.Value] | None = t.c.b.recall(key)
    if found is None:
        made = _half(t, value, dtype, rank)
        if made is None:
            return None
        found = made, value
        t.c.b.remember(key, found)
    return found[0]


def _half(t: Tracer, value: ir.Value, dtype: DType, rank: int | None) -> ir.Value | None:
    b = t.c.b
    if value.const_value is not None and value.producer() is None:
        array = value.const_value.numpy()
        width = array.shape[-1] // 2 if array.ndim > 1 else 0
        same = width > 0 and np.array_equal(array[..., :width], array[..., width:])
        return b.constant(array[..., :width], dtype) if same else None
    node = value.producer()
    if node is None or node.inputs[0] is None:
        return None
    first, rest = node.inputs[0], list(node.inputs[1:])
    if node.op_type == "Concat":
        last = rank is not None and node.attributes["axis"].as_int() in (-1, rank - 1)
        return first if last and len(rest) == 1 and rest[0] is first else None
    rows = node.op_type == "Gather" and _first_axis(node)  # of how many axes is not known here
    if rows or node.op_type in _ELEMENTWISE:
        inner = half(t, first, _dtype_of(first, dtype), None if rows else rank)
        if inner is None:
            return None
        attrs = {k: a.value for k, a in node.attributes.items()}
        return b.once(node.op_type, [inner, *rest], dtype, **attrs)
    return None


def _first_axis(node: ir.Node) -> bool:
    axis = node.attributes.get("axis")
    return axis is None or axis.as_int() == 0


def _dtype_of(value: ir.Value, other: DType) -> DType:
    return next((ours for ours, theirs in ONNX.items() if theirs == value.dtype), other)


def _turned(t: Tracer, op: Op, x: Held, cos: ir.Value, sin: ir.Value) -> Held:
    """The operator on `x: [B, H, S, D]` and halves of tables `[B, S, D / 2]`: on heads side by side
    where they lie so already."""
    c = t.c
    heads, hint = x.dims[1], op.result.name
    flat = heads.constant is not None and views.is_side_by_side(c, x)
    given = views.side_by_side(c, x) if flat else x
    attrs: dict[str, Any] = {"num_heads": heads.constant} if flat else {}
    made = c.b.node("RotaryEmbedding", [_wide(t, given), cos, sin], DType.F32, hint, **attrs)
    turned = rounded(t, made, x.dtype, given.dims)
    return views.apart(c, turned, heads) if flat else turned


def _wide(t: Tracer, held: Held) -> ir.Value:
    return t.c.convert(t.c.whole(held), held.dtype, DType.F32)


def _halves(
    t: Tracer, cos: Held, sin: Held, placed: Callable[[ir.Value], ir.Value]
) -> tuple[ir.Value, ir.Value] | None:
    found: list[ir.Value] = []
    for table in (cos, sin):
        made = half(t, t.c.whole(table), table.dtype, len(table.dims))
        if made is None:
            return None
        found.append(placed(t.c.convert(made, table.dtype, DType.F32)))
    return found[0], found[1]


def _rope(t: Tracer, frame: Frame, op: Op) -> Held:
    x, cos, sin = operands(t, frame, op)
    c, batch = t.c, x.dims[0]

    def every_sequence(table: ir.Value) -> ir.Value:
        rows = c.b.once("Unsqueeze", [table, c.b.integers(0)], DType.F32)
        if batch.constant == 1:
            return rows
        width = Dim.of((x.dims[3].constant or 0) // 2)
        return c.b.once("Expand", [rows, c.sizes.vector((batch, x.dims[2], width))], DType.F32)

    found = _halves(t, cos, sin, every_sequence)
    if found is None:
        places = (2, 3)
        return _body(t, x, c.placed(cos, places, x.dims), c.placed(sin, places, x.dims))
    return _turned(t, op, x, *found)


def _rope_rows(t: Tracer, frame: Frame, op: Op) -> Held:
    x, cos, sin = operands(t, frame, op)
    found = _halves(t, cos, sin, lambda table: table)
    if found is None:
        places = (0, 2, 3)
        return _body(t, x, t.c.placed(cos, places, x.dims), t.c.placed(sin, places, x.dims))
    return _turned(t, op, x, *found)


def _body(t: Tracer, x: Held, cos: Held, sin: Held) -> Held:
    """`x * cos + quarter_turn(x) * sin`, each operation rounded."""
    c, dims = t.c, x.dims
    width = (dims[3].constant or 0) // 2
    cut = (*dims[:3], Dim.of(width))
    value = c.whole(x)
    sizes = [c.b.integers(n) for n in (0, width, 2 * width, 3)]
    ends = [(sizes[0], sizes[1]), (sizes[1], sizes[2])]
    first, second = (
        Held.whole(c.b.node("Slice", [value, *end, sizes[3]], x.dtype, "half"), x.dtype, cut)
        for end in ends
    )
    away = elementwise.unary(c, "neg", second, "")
    both = c.b.node("Concat", [c.whole(away), c.whole(first)], x.dtype, "quarter_turn", axis=3)
    turned = Held.whole(both, x.dtype, dims)
    along = elementwise.binary(c, "mul", x, cos, "")
    across = elementwise.binary(c, "mul", turned, sin, "")
    return elementwise.binary(c, "add", along, across, "")


def _known(case: Case) -> str | None:
    return None if case.extent("x", 3) else "the head's width is not a number"


_WHEN = every(needs(23), narrow("x"), _known)
_NOTE = "in f32, where both halves of the tables are seen to be one value"
NATIVES: tuple[Native[Kernel], ...] = (
    Native("std.nn.rope::rope", "RotaryEmbedding", _NOTE, _rope, _WHEN),
    Native("std.nn.rope::rope_rows", "RotaryEmbedding (rows)", _NOTE, _rope_rows, _WHEN),
)
