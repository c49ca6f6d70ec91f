"""Attention over the keys that a mask can reach.

`Attention` sees hidden scores as minus infinity and gives NaN to a query that sees nothing; the
body gives it the plain mean. So masks are passed as numbers, 0 or -1e30, which the softmax treats
as the body does. Where a mask is known to be a bound on the key's position, keys and values are cut
there first: a step costs what its position asks for, not what the cache could hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from linnet.backends.predicates import every, filled, narrow, settled
from linnet.dims import Dim
from linnet.ir import Op, Value
from linnet.onnx.emit import elementwise, views
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.trace import Frame, Tracer
from linnet.onnx.natives.appended import attend_appended
from linnet.onnx.natives.model import (
    Case,
    Kernel,
    Native,
    Predicate,
    in_f32,
    needs,
    operands,
    result_dims,
    rounded,
)
from linnet.passes.masks import AtMost, MaskFact
from linnet.types import DType

HIDDEN = -1e30


# --- what is known of the mask --------------------------------------------------------------------


def _bounded(case: Case) -> AtMost | None:
    """The mask as one bound on the key's position with an offset that is a number."""
    fact = case.fact("mask")
    atom = fact.single if isinstance(fact, MaskFact) else None
    if atom is None or atom.key != _rank(case) - 1 or atom.offset.constant is None:
        return None
    return atom


def _rank(case: Case) -> int:
    return len(case.type("mask").shape)


def _when(known: Callable[[Case], bool], why: str) -> Predicate:
    def when(case: Case) -> str | None:
        if "mask" not in case.operands:
            return "there is no mask"
        return _applies(case) or (None if known(case) else why)

    return when


def _filled_rows(case: Case) -> str | None:
    """`Attention` refuses a mask a row where there are no rows or no queries."""
    known = [case.extent("q", axis) for axis in (0, 2)]
    return None if all(known) else "there may be no rows or no queries"


_applies = every(
    needs(23), settled("mask"), narrow("q"), filled("k", 2),
    *(filled("q", axis) for axis in range(4)),
)  # fmt: skip


def _is_causal(case: Case) -> bool:
    atom = _bounded(case)
    same = case.type("q").dims[2] == case.type("k").dims[2]
    return (
        same
        and atom is not None
        and (atom.query, atom.bound) == (0, None)
        and (atom.offset.constant == 0)
    )


def _starts(case: Case) -> bool:
    """Whether query i sees the keys 0 .. start + i, with one start for all."""
    atom = _bounded(case)
    return atom is not None and atom.query == 0 and (atom.bound is None or not atom.bound.axes)


def _ends(case: Case) -> bool:
    """Whether every query sees the keys 0 .. last, with one last for all."""
    atom = _bounded(case)
    return (
        atom is not None and atom.query is None and (atom.bound is not None and not atom.bound.axes)
    )


def _rows_end(case: Case) -> bool:
    """Whether the queries of sequence b see its keys 0 .. last[b]."""
    atom = _bounded(case)
    if atom is None or atom.bound is None or atom.bound.axes not in ((0,), (None,)):
        return False
    if atom.bound.axes == (None,) and case.extent("q", 0) != 1:
        return False  # one bound for several sequences
    return atom.query is None or (atom.query == 1 and case.extent("q", 2) == 1)


def _with_bound(case: Case) -> Sequence[Value]:
    """Queries, keys, values, scale, and the bound where the fact has one; not the mask."""
    atom = _bounded(case)
    known = tuple(case.operands[n] for n in ("q", "k", "v", "scale"))
    return known if atom is None or atom.bound is None else (*known, atom.bound.value)


def _offset(case: Case) -> dict[str, Any]:
    atom = _bounded(case)
    return {"offset": 0 if atom is None else atom.offset.constant or 0}


# --- kernels --------------------------------------------------------------------------------------


def _attend(
    t: Tracer, frame: Frame, op: Op, q: ir.Value, k: ir.Value, v: ir.Value, scale: Held,
    bias: ir.Value | None = None, causal: bool = False,
) -> Held:  # fmt: skip
    """`Attention` in f32, rounded to the queries' dtype."""
    made = _attention(t, op, [q, k, v], scale, bias, causal)
    dtype = frame.values[op.operands[0]].dtype
    return rounded(t, made, dtype, result_dims(frame, op))


def _attention(
    t: Tracer, op: Op, inputs: list[ir.Value], scale: Held, bias: ir.Value | None, causal: bool,
    **attrs: Any,
) -> ir.Value:  # fmt: skip
    c, number = t.c, scale.const
    if number is None:
        inputs[0] = c.b.node("Mul", [inputs[0], c.value(scale)], DType.F32, "scaled")
        number = 1.0
    if bias is not None:
        inputs.append(bias)
    return c.b.node("Attention", inputs, DType.F32, op.result.name or "attended",
                    scale=float(number), is_causal=1 if causal else 0, **attrs)  # fmt: skip


def _causal(t: Tracer, frame: Frame, op: Op) -> Held:
    return _whole(t, frame, op, None, causal=True)


def _dense(t: Tracer, frame: Frame, op: Op) -> Held:
    mask = operands(t, frame, op)[4:]
    return _whole(t, frame, op, _bias_of(t, mask[0]) if mask else None)


def _whole(t: Tracer, frame: Frame, op: Op, bias: ir.Value | None, causal: bool = False) -> Held:
    """Queries over all the keys there are; heads are taken side by side where they lie so."""
    q, k, v, scale = operands(t, frame, op)[:4]
    c, heads, shared = t.c, q.dims[1], k.dims[1]
    known = None not in (heads.constant, shared.constant, q.dims[3].constant)
    if not known or not all(views.is_side_by_side(c, h) for h in (q, k, v)):
        wide = in_f32(t, q), in_f32(t, k), in_f32(t, v)
        return _attend(t, frame, op, *wide, scale, bias, causal)
    flat = [views.side_by_side(c, h) for h in (q, k, v)]
    made = _attention(t, op, [in_f32(t, h) for h in flat], scale, bias, causal,
                      q_num_heads=heads.constant, kv_num_heads=shared.constant)  # fmt: skip
    return views.apart(c, rounded(t, made, q.dtype, flat[0].dims), heads)


def _bias_of(t: Tracer, mask: Held) -> ir.Value:
    """0 where the mask is true, else -1e30: `[Q, K]`, or `[B, 1, Q, K]` of `[B, Q, K]`."""
    c = t.c
    value = c.whole(mask)
    key = ("bias", id(value))
    found: tuple[ir.Value, ir.Value] | None = c.b.recall(key)
    if found is None:
        made = _numbers(t, value)
        if len(mask.dims) == 3:
            made = c.b.node("Unsqueeze", [made, c.b.integers(1)], DType.F32, "bias")
        found = made, value
        c.b.remember(key, found)
    return found[0]


def _numbers(t: Tracer, seen: ir.Value) -> ir.Value:
    c = t.c
    zero, hidden = c.scalar(0.0, DType.F32), c.scalar(HIDDEN, DType.F32)
    return c.b.node("Where", [seen, zero, hidden], DType.F32, "bias")


def _cut(t: Tracer, held: Held, count: ir.Value) -> ir.Value:
    """The first `count` positions of the third axis, in f32."""
    c = t.c
    ends = c.b.once("Reshape", [count, c.b.integers(1)], DType.I64)
    inputs = [c.whole(held), c.b.integers(0), ends, c.b.integers(2)]
    return c.convert(c.b.node("Slice", inputs, held.dtype, "reached"), held.dtype, DType.F32)


def _reach(
    t: Tracer, key: Any, make: Callable[[], tuple[ir.Value, ir.Value | None]]
) -> tuple[ir.Value, ir.Value | None]:
    """How many keys are reached and the mask over them, once for all layers of a call."""
    found: tuple[ir.Value, ir.Value | None] | None = t.c.b.recall(key)
    if found is None:
        with t.c.b.at("reach"):
            found = make()
        t.c.b.remember(key, found)
    return found


def _last(t: Tracer, bound: Held | None, offset: int) -> ir.Value:
    """The bound and the offset together, as `i64`."""
    c = t.c
    if bound is None:
        return c.scalar(offset, DType.I64)
    wide = c.convert(c.whole(bound), bound.dtype, DType.I64)
    if not offset:
        return wide
    return c.b.node("Add", [wide, c.scalar(offset, DType.I64)], DType.I64, "last")


def _upto(t: Tracer, frame: Frame, op: Op) -> Held:
    """One last key for all queries. Where even key 0 is hidden, equal scores over all keys give
    the plain mean."""
    q, k, v, scale, *rest = operands(t, frame, op)
    bound = rest[0] if rest else None
    c, keys, offset = t.c, k.dims[2], op.attrs["offset"]
    one = q.dims[2].constant == 1
    appended = attend_appended(t, op, q, k, v, scale, bound, offset) if one else None
    if appended is not None:
        return appended
    if _trusted(t, bound, offset, keys):
        return _reached(t, frame, op, (q, k, v, scale), bound)

    def make() -> tuple[ir.Value, ir.Value | None]:
        last = _last(t, bound, offset)
        every = c.sizes.scalar(keys)
        none = c.b.node("Less", [last, c.scalar(0, DType.I64)], DType.BOOL, "none")
        after = c.b.node("Add", [last, c.scalar(1, DType.I64)], DType.I64, "count")
        count = c.b.node("Min", [after, every], DType.I64, "count")
        count = c.b.node("Where", [none, every, count], DType.I64, "count")
        some = c.b.node("Not", [none], DType.BOOL, "some")
        return count, c.convert(some, DType.BOOL, DType.F32)

    key = ("upto", None if bound is None else id(c.whole(bound)), offset, keys)
    count, weight = _reach(t, key, make)
    wide = c.b.node("Mul", [in_f32(t, q), weight], DType.F32, "q")
    return _attend(t, frame, op, wide, _cut(t, k, count), _cut(t, v, count), scale)


def _trusted(t: Tracer, bound: Held | None, offset: int, keys: Dim) -> bool:
    """Whether the last key may be assumed to be one of the keys."""
    return bound is not None and offset == 0 and t.c.assumed.within(bound, keys - 1)


def _reached(
    t: Tracer, frame: Frame, op: Op, given: tuple[Held, Held, Held, Held], last: Held | None
) -> Held:
    """All queries over the keys up to `last`, which is one of them."""
    q, k, v, scale = given
    c = t.c

    def make() -> tuple[ir.Value, ir.Value | None]:
        place = _last(t, last, 0)
        return c.b.node("Add", [place, c.scalar(1, DType.I64)], DType.I64, "count"), None

    key = ("reached", None if last is None else id(c.whole(last)))
    count, _ = _reach(t, key, make)
    return _attend(t, frame, op, in_f32(t, q), _cut(t, k, count), _cut(t, v, count), scale)


def _from(t: Tracer, frame: Frame, op: Op) -> Held:
    """Query i sees the keys 0 .. start + i."""
    q, k, v, scale, *rest = operands(t, frame, op)
    bound = rest[0] if rest else None
    if q.dims[2].constant == 1:
        return _upto(t, frame, op)
    c, keys, queries, offset = t.c, k.dims[2], q.dims[2], op.attrs["offset"]
    appended = attend_appended(t, op, q, k, v, scale, bound, offset)
    if appended is not None:
        return appended

    def make() -> tuple[ir.Value, ir.Value | None]:
        first = _last(t, bound, offset)
        every = c.sizes.scalar(keys)
        none = c.b.node("Less", [first, c.scalar(0, DType.I64)], DType.BOOL, "none")
        after = c.b.node("Add", [first, c.sizes.scalar(queries)], DType.I64, "count")
        count = c.b.node("Min", [after, every], DType.I64, "count")
        count = c.b.node("Where", [none, every, count], DType.I64, "count")
        rows = elementwise.iota(c, queries, DType.I64)
        ends = c.b.node("Add", [c.whole(rows), first], DType.I64, "ends")
        column = c.b.node("Unsqueeze", [ends, c.b.integers(1)], DType.I64, "ends")
        return count, _seen(t, count, column)

    key = ("from", None if bound is None else id(c.whole(bound)), offset, keys, queries)
    count, bias = _reach(t, key, make)
    return _attend(t, frame, op, in_f32(t, q), _cut(t, k, count), _cut(t, v, count), scale, bias)


def _seen(t: Tracer, count: ir.Value, ends: ir.Value) -> ir.Value:
    """The mask, as numbers, of the first `count` keys up to `ends` each."""
    c = t.c
    places = c.b.node("Range", [c.scalar(0, DType.I64), count, c.scalar(1, DType.I64)], DType.I64,
                      "places")  # fmt: skip
    return _numbers(t, c.b.node("LessOrEqual", [places, ends], DType.BOOL, "seen"))


def _rows_upto(t: Tracer, frame: Frame, op: Op) -> Held:
    """Sequence b's queries see its keys 0 .. last[b]; the longest says how far is read."""
    q, k, v, scale, bound = operands(t, frame, op)
    c, keys, queries, offset = t.c, k.dims[2], q.dims[2], op.attrs["offset"]
    one = q.dims[2].constant == 1
    appended = attend_appended(t, op, q, k, v, scale, bound, offset) if one else None
    if appended is not None:
        return appended

    def make() -> tuple[ir.Value, ir.Value | None]:
        last = _last(t, bound, offset)
        every = c.sizes.scalar(keys)
        # After a row that sees nothing every key counts: its plain mean is over all of them.
        none = c.b.node("Less", [last, c.scalar(0, DType.I64)], DType.BOOL, "none")
        after = c.b.node("Add", [last, c.scalar(1, DType.I64)], DType.I64, "count")
        wanted = c.b.node("Where", [none, every, after], DType.I64, "wanted")
        start = c.b.node("Concat", [wanted, c.b.integers(1)], DType.I64, "wanted", axis=0)
        most = c.b.node("ReduceMax", [start], DType.I64, "most", keepdims=0)
        count = c.b.node("Min", [most, every], DType.I64, "count")
        ends = c.b.node("Reshape", [last, c.b.integers(-1, 1, 1, 1)], DType.I64, "ends")
        if queries != 1:  # the operator's mask has a row for each query
            one, many = c.b.integers(1), c.b.once("Reshape", [c.sizes.scalar(queries),
                                                  c.b.integers(1)], DType.I64)  # fmt: skip
            shape = c.b.once("Concat", [one, one, many, one], DType.I64, axis=0)
            ends = c.b.node("Expand", [ends, shape], DType.I64, "ends")
        return count, _seen(t, count, ends)

    key = ("rows", id(c.whole(bound)), offset, keys, queries)
    count, bias = _reach(t, key, make)
    return _attend(t, frame, op, in_f32(t, q), _cut(t, k, count), _cut(t, v, count), scale, bias)


_A = "std.nn.attention::"


def _without_mask(case: Case) -> Sequence[Value]:
    return tuple(case.operands[n] for n in ("q", "k", "v", "scale"))


def _family(op: str) -> tuple[Native[Kernel], ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "Attention (causal)", "Attention, causal", _causal,
               _when(_is_causal, "the mask is not known to be causal"), _without_mask),
        Native(path, "Attention (from)", "Attention over the keys up to a prompt's own", _from,
               _when(_starts, "no start of the prompt is known"), _with_bound, _offset),
        Native(path, "Attention (upto)", "Attention over the keys up to a position", _upto,
               _when(_ends, "no last key is known"), _with_bound, _offset),
        Native(path, "Attention", "Attention under the mask as it is", _dense, _applies),
    )  # fmt: skip


def _row_family(op: str) -> tuple[Native[Kernel], ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "Attention (rows upto)", "Attention over the keys up to the longest row",
               _rows_upto, every(_filled_rows, _when(_rows_end, "no row's length is known")),
               _with_bound, _offset),
        Native(path, "Attention (rows)", "Attention under the masks as they are", _dense,
               every(_filled_rows, _applies)),
    )  # fmt: skip


NATIVES: tuple[Native[Kernel], ...] = (
    *_family("attention"),
    *_family("grouped_attention"),
    *_row_family("attention_rows"),
    *_row_family("grouped_attention_rows"),
)
