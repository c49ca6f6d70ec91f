"""Cache writes that touch only the places they write.

The runtime's operators refuse places outside the cache, where the body writes nothing, and some
take a negative one for a place counted from the end. So every place is brought into range, and what
lay outside writes what stands there already, or repeats a write that is inside. Places that may be
assumed to lie inside are taken as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from linnet.backends.predicates import every, filled
from linnet.ir import Op
from linnet.onnx.emit import elementwise, views
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.trace import Frame, Tracer
from linnet.onnx.natives.appended import note_write
from linnet.onnx.natives.model import (
    Case,
    Kernel,
    Native,
    needs,
    operands,
    result_dims,
)
from linnet.types import DType


def _scatter(t: Tracer, frame: Frame, op: Op, cache: Held, new: ir.Value, starts: ir.Value) -> Held:
    """`new` along the third axis of every row, from that row's start."""
    made = t.c.b.node("TensorScatter", [t.c.whole(cache), new, starts], cache.dtype,
                      op.result.name, axis=2, mode="linear")  # fmt: skip
    return Held.whole(made, cache.dtype, result_dims(frame, op))


# --- one position ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """A position brought into range, whether it lay there, and the value it came from."""

    place: ir.Value
    inside: ir.Value
    source: ir.Value


def _in_range(t: Tracer, at: Held, cache: Held) -> _Place:
    """The same for all layers of a call."""
    c = t.c
    value = c.whole(at)
    extent = cache.dims[2].constant or 1
    key = ("in_range", id(value), extent)
    found: _Place | None = c.b.recall(key)
    if found is None:
        wide = c.convert(value, at.dtype, DType.I64)
        low = c.b.node("Max", [wide, c.scalar(0, DType.I64)], DType.I64, "place")
        place = c.b.node("Min", [low, c.scalar(extent - 1, DType.I64)], DType.I64, "place")
        inside = c.b.node("Equal", [place, wide], DType.BOOL, "inside")
        found = _Place(place, inside, value)
        c.b.remember(key, found)
    return found


def _list(t: Tracer, scalar: ir.Value) -> ir.Value:
    return t.c.b.once("Reshape", [scalar, t.c.b.integers(1)], DType.I64)


def _starts(t: Tracer, start: ir.Value, cache: Held) -> ir.Value:
    """One start for every row."""
    return t.c.b.once("Expand", [start, t.c.sizes.vector(cache.dims[:1])], DType.I64)


def _at(t: Tracer, at: Held) -> ir.Value:
    return t.c.convert(t.c.whole(at), at.dtype, DType.I64)


def _write_at(t: Tracer, frame: Frame, op: Op) -> Held:
    cache, value, at = operands(t, frame, op)
    if t.c.assumed.within(at, cache.dims[2] - 1):
        starts = _starts(t, _at(t, at), cache)
        made = _scatter(t, frame, op, cache, t.c.whole(value), starts)
        return note_write(t, made, cache, value, at)
    c, found = t.c, _in_range(t, at, cache)
    old = c.b.node("Gather", [c.whole(cache), _list(t, found.place)], cache.dtype, "old", axis=2)
    new = c.where(found.inside, c.whole(value), old, cache.dtype)
    return _scatter(t, frame, op, cache, new, _starts(t, found.place, cache))


def _write_rows(t: Tracer, frame: Frame, op: Op) -> Held:
    cache, value, at = operands(t, frame, op)
    if t.c.assumed.within(at, cache.dims[2] - 1):
        made = _scatter(t, frame, op, cache, t.c.whole(value), _at(t, at))
        return note_write(t, made, cache, value, at)
    c, found = t.c, _in_range(t, at, cache)
    column = c.b.once("Unsqueeze", [found.place, c.b.integers(1)], DType.I64)
    # One position of every row: `GatherND` along the third axis, rows being a batch of it.
    turned = c.transpose(c.whole(cache), cache.dtype, (0, 2, 1, 3), "by_position")
    old = c.b.node("GatherND", [turned, column], cache.dtype, "old", batch_dims=1)
    old = c.b.node("Unsqueeze", [old, c.b.integers(2)], cache.dtype, "old")
    inside = c.b.once("Reshape", [found.inside, c.b.integers(-1, 1, 1, 1)], DType.BOOL)
    new = c.where(inside, c.whole(value), old, cache.dtype)
    return _scatter(t, frame, op, cache, new, found.place)


# --- a span ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Window:
    """Where a span's window lies in the cache, and what of the span each of its places takes."""

    start: ir.Value
    end: ir.Value
    takes: ir.Value  # places of the span, brought into range
    taken: ir.Value  # which of them lie in the span
    source: ir.Value


def _window(t: Tracer, at: Held, cache: Held, value: Held) -> _Window:
    """As long as the span or the cache, whichever is shorter, and moved to lie in the cache: a span
    that hangs over an end keeps the old content of the rest of its window."""
    c = t.c
    held = c.whole(at)
    extent, length = cache.dims[2], value.dims[2]
    key = ("window", id(held), extent, length)
    found: _Window | None = c.b.recall(key)
    if found is not None:
        return found
    zero, one = c.scalar(0, DType.I64), c.scalar(1, DType.I64)
    wide = c.convert(held, at.dtype, DType.I64)
    span, room = c.sizes.scalar(length), c.sizes.scalar(extent)
    width = c.b.node("Min", [span, room], DType.I64, "width")
    low = c.b.node("Max", [wide, zero], DType.I64, "start")
    start = c.b.node("Min", [low, c.b.node("Sub", [room, width], DType.I64)], DType.I64, "start")
    places = c.b.node("Range", [zero, width, one], DType.I64, "places")
    shift = c.b.node("Sub", [start, wide], DType.I64, "shift")
    takes = c.b.node("Add", [places, shift], DType.I64, "takes")
    inside = c.b.node("Max", [takes, zero], DType.I64, "takes")
    inside = c.b.node("Min", [inside, c.b.node("Sub", [span, one], DType.I64)], DType.I64, "takes")
    same = c.b.node("Equal", [inside, takes], DType.BOOL, "taken")
    taken = c.b.node("Unsqueeze", [same, c.b.integers(1)], DType.BOOL, "taken")
    end = c.b.node("Add", [start, width], DType.I64, "end")
    found = _Window(start, end, inside, taken, held)
    c.b.remember(key, found)
    return found


def _write_span(t: Tracer, frame: Frame, op: Op) -> Held:
    cache, value, at = operands(t, frame, op)
    if value.dims[2].constant == 1:
        return _write_at(t, frame, op)
    if t.c.assumed.within(at, cache.dims[2] - value.dims[2]):
        starts = _starts(t, _at(t, at), cache)
        made = _scatter(t, frame, op, cache, t.c.whole(value), starts)
        return note_write(t, made, cache, value, at)
    c, dtype = t.c, cache.dtype
    w = _window(t, at, cache, value)
    ends = [_list(t, w.start), _list(t, w.end), c.b.integers(2)]
    old = c.b.node("Slice", [c.whole(cache), *ends], dtype, "old")
    new = c.b.node("Gather", [c.whole(value), w.takes], dtype, "new", axis=2)
    new = c.where(w.taken, new, old, dtype)
    return _scatter(t, frame, op, cache, new, _starts(t, w.start, cache))


# --- scattered tokens -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tokens:
    """For each token which one it writes as (None: itself), and the places `[P, H, 3]` of those."""

    chosen: ir.Value | None
    places: ir.Value
    sources: tuple[ir.Value, ir.Value]


def _tokens(t: Tracer, cache: Held, rows: ir.Value, at: ir.Value, inside: bool) -> _Tokens:
    """The places of tokens, which are known to lie `inside` the cache or are brought there; the
    same for all layers of a call."""
    c = t.c
    key = ("tokens", id(rows), id(at), cache.dims[:3])
    found: _Tokens | None = c.b.recall(key)
    if found is None:
        chosen = None if inside else _chosen(t, cache, rows, at)
        columns = [_column(t, rows, chosen), _heads(t, cache), _column(t, at, chosen)]
        count = c.b.node("Shape", [rows], DType.I64, "count")
        rest = c.sizes.vector((cache.dims[1], 1))
        shape = c.b.node("Concat", [count, rest], DType.I64, axis=0)
        wide = [c.b.node("Expand", [column, shape], DType.I64, "place") for column in columns]
        places = c.b.node("Concat", wide, DType.I64, "places", axis=2)
        found = _Tokens(chosen, places, (rows, at))
        c.b.remember(key, found)
    return found


def _chosen(t: Tracer, cache: Held, rows: ir.Value, at: ir.Value) -> ir.Value:
    """A token outside the cache writes as the first that is inside, the same value to the same
    place; where none is, all write what stands at the first place (an extra token, the last)."""
    c = t.c
    inside = _both(t, _within(t, rows, cache, 0), _within(t, at, cache, 2))
    flags = c.convert(inside, DType.BOOL, DType.I32)
    extra = c.b.constant(np.ones(1), DType.I32)
    every = c.b.node("Concat", [flags, extra], DType.I32, "inside", axis=0)
    first = c.b.node("ArgMax", [every], DType.I64, "first", axis=0, keepdims=1)
    count = c.b.node("Size", [inside], DType.I64, "count")
    ends = [c.scalar(0, DType.I64), count, c.scalar(1, DType.I64)]
    order = c.b.node("Range", ends, DType.I64, "order")
    return c.b.node("Where", [inside, order, first], DType.I64, "chosen")


def _within(t: Tracer, value: ir.Value, cache: Held, axis: int) -> ir.Value:
    c = t.c
    extent = c.sizes.scalar(cache.dims[axis])
    low = c.b.node("GreaterOrEqual", [value, c.scalar(0, DType.I64)], DType.BOOL)
    return _both(t, low, c.b.node("Less", [value, extent], DType.BOOL))


def _both(t: Tracer, a: ir.Value, b: ir.Value) -> ir.Value:
    return t.c.b.node("And", [a, b], DType.BOOL, "inside")


def _column(t: Tracer, value: ir.Value, chosen: ir.Value | None) -> ir.Value:
    c = t.c
    if chosen is not None:
        every = c.b.node("Concat", [value, c.b.integers(0)], DType.I64, "places", axis=0)
        value = c.b.node("Gather", [every, chosen], DType.I64, "places", axis=0)
    return c.b.node("Unsqueeze", [value, c.b.integers(1, 2)], DType.I64, "places")


def _heads(t: Tracer, cache: Held) -> ir.Value:
    heads = t.c.whole(elementwise.iota(t.c, cache.dims[1], DType.I64))
    return t.c.b.once("Reshape", [heads, t.c.b.integers(1, -1, 1)], DType.I64)


def _put(t: Tracer, frame: Frame, op: Op, cache: Held, value: ir.Value, at: _Tokens) -> Held:
    """`value: [P, H, D]`, a token a row."""
    c, dtype = t.c, cache.dtype
    if at.chosen is not None:
        ends = [c.b.integers(0, 0), c.b.integers(1, 1), c.b.integers(0, 2)]
        corner = c.b.node("Slice", [c.whole(cache), *ends], dtype, "corner")
        corner = c.b.node("Squeeze", [corner, c.b.integers(2)], dtype, "corner")
        every = c.b.node("Concat", [value, corner], dtype, "values", axis=0)
        value = c.b.node("Gather", [every, at.chosen], dtype, "values", axis=0)
    inputs = [c.whole(cache), at.places, value]
    made = c.b.node("ScatterND", inputs, dtype, op.result.name)
    return Held.whole(made, dtype, result_dims(frame, op))


def _write_tokens(t: Tracer, frame: Frame, op: Op) -> Held:
    cache, value, rows, at = operands(t, frame, op)
    c = t.c
    inside = c.assumed.within(rows, cache.dims[0] - 1) and c.assumed.within(at, cache.dims[2] - 1)
    _, heads, count, width = value.dims
    turned = views.permute(c, value, views.HEADS, (value.dims[0], count, heads, width))
    tokens = views.reshape(c, turned, (count, heads, width), "tokens")
    places = _tokens(t, cache, _at(t, rows), _at(t, at), inside)
    return _put(t, frame, op, cache, c.whole(tokens), places)


def _write_slots(t: Tracer, frame: Frame, op: Op) -> Held:
    cache, value, slots, at = operands(t, frame, op)
    c = t.c
    prompts, _, length, width = value.dims
    held, start = c.whole(slots), c.whole(at)
    key = ("slots", id(held), id(start), prompts, length)
    found: tuple[ir.Value, ir.Value, object] | None = c.b.recall(key)
    if found is None:
        both = c.sizes.vector((prompts, length))
        wide = c.convert(held, slots.dtype, DType.I64)
        rows = c.b.node("Unsqueeze", [wide, c.b.integers(1)], DType.I64, "rows")
        rows = c.b.node("Expand", [rows, both], DType.I64, "rows")
        places = c.whole(elementwise.iota(c, length, DType.I64))
        offset = c.convert(start, at.dtype, DType.I64)
        places = c.b.node("Add", [places, offset], DType.I64, "places")
        places = c.b.node("Expand", [places, both], DType.I64, "places")
        flat = [c.b.node("Reshape", [v, c.b.integers(-1)], DType.I64) for v in (rows, places)]
        found = flat[0], flat[1], (held, start)
        c.b.remember(key, found)
    turned = views.permute(c, value, views.HEADS, (prompts, length, cache.dims[1], width))
    tokens = views.reshape(c, turned, (prompts * length, cache.dims[1], width), "tokens")
    inside = c.assumed.within(slots, cache.dims[0] - 1) and c.assumed.within(
        at, cache.dims[2] - length
    )
    places = _tokens(t, cache, found[0], found[1], inside)
    return _put(t, frame, op, cache, c.whole(tokens), places)


# --- the table ------------------------------------------------------------------------------------


def _fixed(case: Case) -> str | None:
    known = [case.extent("cache", axis) for axis in (0, 2)]
    return "the cache's extents are not fixed" if None in known else None


_CACHE = "std.nn.cache::"
_ANY = every(_fixed, filled("cache", 0), filled("cache", 2))
_IN_PLACE = "in place where the old value is read no more"
NATIVES: tuple[Native[Kernel], ...] = (
    Native(f"{_CACHE}write_at", "TensorScatter", f"one position, {_IN_PLACE}", _write_at,
           every(needs(24), _ANY), update=0),
    Native(f"{_CACHE}write_span", "TensorScatter (span)", f"its positions, {_IN_PLACE}",
           _write_span, every(needs(24), _ANY), update=0),
    Native(f"{_CACHE}write_rows", "TensorScatter (rows)", f"one position a row, {_IN_PLACE}",
           _write_rows, every(needs(24), _ANY), update=0),
    Native(f"{_CACHE}write_slots", "ScatterND (slots)", f"its rows' positions, {_IN_PLACE}",
           _write_slots, _ANY, update=0),
    Native(f"{_CACHE}write_tokens", "ScatterND (tokens)", f"its tokens' places, {_IN_PLACE}",
           _write_tokens, _ANY, update=0),
)  # fmt: skip
