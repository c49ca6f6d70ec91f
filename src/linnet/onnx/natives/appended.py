"""Attention over a cache that has just been appended to, in one operator of ONNX Runtime's.

`com.microsoft.GroupQueryAttention` writes keys and values where a sequence's filled part ends and
attends over that part, each query up to its own position, in the cache's own memory. It answers a
pair of writes and the attention that follows them where

- every sequence's keys and values are written at the position its first query stands at;
- that position is an input of the entry which the caller has checked (see `Assumptions`): the
  operator does not look;
- the caches are states that nothing else reads, so that they are updated in place: the operator
  leaves what it does not fill unwritten in other memory. `Written.appended` names these states; a
  model whose runtime can't bind them so has to be written without (`appends=False`).
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from linnet.dims import Dim
from linnet.ir import Op
from linnet.onnx.emit import views
from linnet.onnx.emit.graph import MICROSOFT
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.trace import Tracer
from linnet.types import DType


@dataclass(frozen=True, slots=True)
class _Write:
    """A cache's new value: where `value` was written, at the input `at`."""

    made: ir.Value
    cache: Held
    value: Held
    at: str


def note_write(t: Tracer, made: Held, cache: Held, value: Held, at: Held) -> Held:
    """Keeps in mind that `made` is `cache` with `value` written at a position that is checked."""
    if at.value is not None and made.value is not None:
        name = t.c.assumed.origin(at.value)
        if name is not None:
            t.c.b.remember(("written", id(made.value)), _Write(made.value, cache, value, name))
    return made


def attend_appended(
    t: Tracer, op: Op, q: Held, k: Held, v: Held, scale: Held, bound: Held | None, offset: int
) -> Held | None:
    """The attention with the writes it follows as one operator; None where that isn't allowed."""
    writes = [t.c.b.recall(("written", id(held.value))) for held in (k, v)]
    if not _allowed(t, q, writes, scale, bound, offset):
        return None
    keys, values = writes
    flat = [views.side_by_side(t.c, held) for held in (q, keys.value, values.value)]
    assert bound is not None
    inputs = [
        *(t.c.whole(held) for held in flat),
        *(t.c.whole(write.cache) for write in writes),
        *_lengths(t, bound, q.dims),
    ]
    hint = op.result.name or "attended"
    heads, shared = q.dims[1].constant, k.dims[1].constant
    made, *caches = t.c.b.nodes(
        "GroupQueryAttention", inputs, (DType.F32,) * 3, hint, MICROSOFT, num_heads=heads,
        kv_num_heads=shared, scale=float(scale.const or 0.0),
    )  # fmt: skip
    for write, cache in zip(writes, caches, strict=True):
        _replace(t, write, cache)
    return views.apart(t.c, Held.whole(made, DType.F32, flat[0].dims), q.dims[1])


def _allowed(
    t: Tracer, q: Held, writes: list[_Write | None], scale: Held, bound: Held | None, offset: int
) -> bool:
    c = t.c
    if not (c.microsoft and t.appends and c.b.depth == 1 and offset == 0):
        return False
    if q.dtype is not DType.F32 or scale.const is None or bound is None or bound.value is None:
        return False
    first = c.assumed.origin(bound.value)
    known = (q.dims[1].constant, q.dims[3].constant)
    if first is None or None in known or (q.dims[0].constant != 1 and q.dims[2].constant != 1):
        return False
    states = {id(value) for value in t.members.inputs.values()}
    return all(
        write is not None and write.at == first and id(write.cache.value) in states
        and write.value.dims[2] == q.dims[2] and write.value.dims[0] == q.dims[0]
        and write.value.dtype is DType.F32
        for write in writes
    )  # fmt: skip


def _lengths(t: Tracer, bound: Held, dims: tuple[Dim, ...]) -> tuple[ir.Value, ir.Value]:
    """Each sequence's last position, and the longest sequence's length; the same for all layers."""
    c = t.c
    key = ("lengths", id(c.whole(bound)), dims[0], dims[2])
    found: tuple[ir.Value, ir.Value, ir.Value] | None = c.b.recall(key)
    if found is None:
        with c.b.at("lengths"):
            first = c.convert(c.whole(bound), bound.dtype, DType.I32)
            more = c.convert(c.sizes.scalar(dims[2]), DType.I64, DType.I32)
            after = c.b.node("Add", [first, more], DType.I32, "after")
            total = after
            if bound.dims:
                total = c.b.node("ReduceMax", [after], DType.I32, "most", keepdims=0)
            last = c.b.node("Sub", [after, c.scalar(1, DType.I32)], DType.I32, "last")
            if not bound.dims:
                rows = c.sizes.vector(dims[:1])
                last = c.b.node("Expand", [last, rows], DType.I32, "last")
        found = last, total, c.whole(bound)
        c.b.remember(key, found)
    return found[:2]


def _replace(t: Tracer, write: _Write, cache: ir.Value) -> None:
    """The state holds what the operator wrote, and the write itself is left without a reader."""
    for path, held in t.members.states.items():
        if held.value is write.made:
            t.members.write(path, Held.whole(cache, DType.F32, held.dims))
            t.members.appended.add(path)
            return
