"""Values that hold others' elements, and the shortest way from one view to another.

A reshape of a reshape is one of the first value, a transpose of a transpose one of what that began
with, and a transpose that moves only axes of extent 1 is a reshape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from linnet.dims import Dim
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.held import Held

Dims = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class _View:
    """What a value was made from; it holds the value itself, whose identity is the key."""

    value: ir.Value
    source: Held
    order: tuple[int, ...] | None = None  # None: a reshape


def reshape(c: Core, a: Held, dims: Dims, hint: str = "") -> Held:
    if a.const is not None or a.dims == dims:
        return a.reshaped(dims)
    source = _source(c, Held.whole(c.whole(a), a.dtype, a.dims))
    if source.dims == dims:
        return source
    key = ("reshape", id(source.value), dims)
    found: tuple[Held, Held] | None = c.b.recall(key)
    if found is None:
        value = c.reshape(c.whole(source), a.dtype, dims, hint)
        found = Held.whole(value, a.dtype, dims), source
        c.b.remember(key, found)
        c.b.remember(("view", id(value)), _View(value, source))
    return found[0]


def _source(c: Core, held: Held) -> Held:
    """What the value is a reshape of, or itself."""
    view: _View | None = c.b.recall(("view", id(held.value)))
    return view.source if view is not None and view.order is None else held


def permute(c: Core, a: Held, order: Sequence[int], dims: Dims, hint: str = "") -> Held:
    if a.const is not None or list(order) == list(range(len(order))):
        return a.reshaped(dims)
    whole = Held.whole(c.whole(a), a.dtype, a.dims)
    view: _View | None = c.b.recall(("view", id(whole.value)))
    if view is not None and view.order is not None:
        order = [view.order[k] for k in order]
        whole = view.source
        if order == list(range(len(order))):
            return whole
    wide = [k for k in order if whole.dims[k].constant != 1]
    if wide == sorted(wide):
        return reshape(c, whole, dims, hint)
    value = c.transpose(c.whole(whole), a.dtype, order, hint)
    c.b.remember(("view", id(value)), _View(value, whole, tuple(order)))
    return Held.whole(value, a.dtype, dims)


def together(c: Core, helds: Sequence[Held]) -> tuple[list[Held], Dims]:
    """Operands of an elementwise operation in the shape that most of them were reshaped from, so
    that the operation needs no reshape before it; the shape, and the operands as they are where
    that gains nothing."""
    dims = helds[0].dims
    whole = [held for held in helds if held.const is None]
    if not all(held.is_whole and held.dims == dims for held in whole):
        return list(helds), dims
    sources = [source for held in whole if (source := _source(c, held)).dims != dims]
    if 2 * len(sources) < len(whole) or len({source.dims for source in sources}) != 1:
        return list(helds), dims
    shape = sources[0].dims
    return [reshape(c, held, shape) for held in helds], shape


# --- heads ----------------------------------------------------------------------------------------

HEADS = (0, 2, 1, 3)


def side_by_side(c: Core, a: Held) -> Held:
    """`[B, H, S, D] -> [B, S, H * D]`."""
    b, h, s, d = a.dims
    return reshape(c, permute(c, a, HEADS, (b, s, h, d), "heads"), (b, s, h * d), "heads")


def apart(c: Core, a: Held, heads: Dim) -> Held:
    """`[B, S, H * D] -> [B, H, S, D]`, where `D` is a number."""
    b, s, width = a.dims
    assert width.constant is not None and heads.constant is not None
    d = Dim.of(width.constant // heads.constant)
    rows = reshape(c, a, (b, s, heads, d), "heads")
    return permute(c, rows, HEADS, (b, heads, s, d), "heads")


def is_side_by_side(c: Core, a: Held) -> bool:
    """Whether `side_by_side` finds the value as it was, or has only axes of extent 1 to move."""
    if a.dims[2].constant == 1:
        return True
    view: _View | None = c.b.recall(("view", id(a.value)))
    return view is not None and view.order == HEADS
