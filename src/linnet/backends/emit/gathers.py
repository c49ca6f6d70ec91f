"""`gather`: diagonals, look-ups of rows, and indexing at several axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linnet.backends.emit.dtypes import dtype_of, tensor
from linnet.backends.emit.writer import Writer
from linnet.backends.expr import ATOM, Expr, joined
from linnet.ir import Op

Source = Sequence[tuple[str, int]]


def emit_gather(w: Writer, op: Op) -> None:
    source: Source = op.attrs["source"]
    index_axes: Sequence[Sequence[int]] = op.attrs["index_axes"]
    x = w.get(op.operands[0])
    indices = [_index(w, op, k) for k in range(len(index_axes))]
    if x.host:
        w.define(op.result, x)
        return
    x = w.indexed(w.whole(x, tensor(op.operands[0].type)), op)
    made = (
        _numbers(x, source, indices)
        or _rows(w, x, source, index_axes, indices)
        or _general(w, op, x, source, index_axes, indices)
    )
    w.define(op.result, made, hint="picked")


def _index(w: Writer, op: Op, k: int) -> Expr:
    """Index operand `k`, as a host number or a whole tensor."""
    value = op.operands[1 + k]
    expr, type_ = w.get(value), tensor(value.type)
    if expr.host and not type_.shape:
        return w.position(expr)
    return w.index(w.whole(expr, type_), dtype_of(type_))


def _numbers(x: Expr, source: Source, indices: Sequence[Expr]) -> Expr | None:
    """`x[i, :, j]` with numbers, the other axes in their order."""
    kept = [r for kind, r in source if kind == "axis"]
    if kept != list(range(len(kept))) or not all(e.host for e in indices):
        return None
    parts = [":" if kind == "axis" else indices[k].text for kind, k in source]
    while parts and parts[-1] == ":":
        parts.pop()
    if not parts:
        return x
    text = f"{x.at(ATOM)}[{', '.join(parts)}]"
    names = joined((x, *indices))
    return replace(x, text=text, prec=ATOM, rank=len(kept), names=names)


def _rows(
    w: Writer, x: Expr, source: Source, index_axes: Sequence[Sequence[int]],
    indices: Sequence[Expr],
) -> Expr | None:  # fmt: skip
    """One tensor of indices along one axis, whose axes come where that axis was."""
    if len(indices) != 1 or indices[0].host:
        return None
    places = [i for i, (kind, _) in enumerate(source) if kind == "index"]
    if len(places) != 1:
        return None
    axis, index, over = places[0], indices[0], tuple(index_axes[0])
    wanted: list[int] = []
    for i, (_, r) in enumerate(source):
        wanted.extend(over if i == axis else (r,))
    if wanted != list(range(len(wanted))):
        return None
    text = w.rows(x, axis, index, len(over))
    return Expr(text, rank=len(wanted), names=joined((x, index)))


def _general(
    w: Writer, op: Op, x: Expr, source: Source, index_axes: Sequence[Sequence[int]],
    indices: Sequence[Expr],
) -> Expr:  # fmt: skip
    """Advanced indexing: an axis that an index or a diagonal also runs along is counted out."""
    result = tensor(op.result.type)
    runs = [r for kind, r in source if kind == "axis"]
    over = {r for axes in index_axes for r in axes} | {r for r in runs if runs.count(r) > 1}
    if not over and not indices:
        return _permuted(w, x, runs)
    lead = sorted(over)  # the axes that advanced indexing makes, moved to the front
    indices = _inside(w, op, source, indices)
    names = joined((x, *indices))
    parts: list[str] = []
    shape: list[int | None] = []  # what is left of each axis: a free one, or None for indices
    for kind, k in source:
        if kind == "axis" and k not in over:
            parts.append(":")
            shape.append(k)
        elif kind == "axis":
            size = w.size(result.dims[k])
            names = names | size.names
            run = f"{w.words.function('arange')}({size.text}{w.words.device})"
            parts.append(_lined(w, run, (k,), lead))
            shape.append(None)
        elif indices[k].host or not index_axes[k]:
            parts.append(indices[k].text)
            if not (indices[k].host and w.words.numbers_first):
                shape.append(None)
        else:
            parts.append(_lined(w, indices[k].at(ATOM), index_axes[k], lead))
            shape.append(None)
    free = [axis for axis in shape if axis is not None]
    places = [i for i, axis in enumerate(shape) if axis is None]
    first = places[0] if places else 0
    together = places == list(range(first, first + len(places)))
    order = [*free[:first], *lead, *free[first:]] if together else [*lead, *free]
    made = Expr(f"{x.at(ATOM)}[{', '.join(parts)}]", rank=len(order), names=names)
    return _permuted(w, made, order)


def _inside(w: Writer, op: Op, source: Source, indices: Sequence[Expr]) -> list[Expr]:
    """The indices, tensors among them as advanced indexing of their axes takes them."""
    made = list(indices)
    for axis, (kind, k) in enumerate(source):
        if kind == "index" and not made[k].host:
            dtype = dtype_of(op.operands[1 + k].type)
            made[k] = w.inside(made[k], dtype, tensor(op.operands[0].type).dims[axis])
    return made


def _lined(w: Writer, text: str, axes: Sequence[int], lead: Sequence[int]) -> str:
    """An index over result axes `axes`, permuted and padded to stand over all of `lead`."""
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    if order != list(range(len(axes))):
        text = f"{text}.{w.words.permute}({', '.join(map(str, order))})"
    own = set(axes)
    parts = [":" if r in own else "None" for r in lead if r >= min(own, default=0)]
    while parts and parts[0] == "None":
        parts.pop(0)
    return f"{text}[{', '.join(parts)}]" if "None" in parts else text


def _permuted(w: Writer, x: Expr, order: Sequence[int]) -> Expr:
    """`x`, whose axis i is result axis `order[i]`, with its axes in the result's order."""
    if list(order) == sorted(order):
        return replace(x, rank=len(order))
    places = [order.index(r) for r in range(len(order))]
    text = f"{x.at(ATOM)}.{w.words.permute}({', '.join(map(str, places))})"
    return replace(x, text=text, prec=ATOM, rank=len(order))
