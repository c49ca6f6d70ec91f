"""Moving elements: concat, slice, gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from linnet.dims import Dim
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.elementwise import iota
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.indices import not_wrapping
from linnet.onnx.emit.views import permute
from linnet.types import DType

Dims = tuple[Dim, ...]


def concat(c: Core, parts: Sequence[Held], axis: int, dims: Dims, hint: str) -> Held:
    filled = [p for p in parts if p.dims[axis].constant != 0] or list(parts[:1])
    if len(filled) == 1:
        return filled[0].reshaped(dims)
    values = [c.whole(p) for p in filled]
    return Held.whole(
        c.b.node("Concat", values, filled[0].dtype, hint, axis=axis), filled[0].dtype, dims
    )


Bound = tuple[Dim, Dim, Dim] | None


def slice_(c: Core, a: Held, bounds: Sequence[Bound], dims: Dims, hint: str) -> Held:
    cut = [
        k for k, bound in enumerate(bounds)
        if bound is not None and not _is_all(bound, a.dims[k])
    ]  # fmt: skip
    if a.const is not None or not cut:
        return a.reshaped(dims)
    chosen = [bound for k, bound in enumerate(bounds) if k in cut and bound is not None]
    starts, stops, steps = (c.sizes.vector([bound[i] for bound in chosen]) for i in range(3))
    inputs = [c.whole(a), starts, stops, c.b.integers(*cut), steps]
    return Held.whole(c.b.node("Slice", inputs, a.dtype, hint), a.dtype, dims)


def _is_all(bound: tuple[Dim, Dim, Dim], extent: Dim) -> bool:
    start, stop, step = bound
    return start.constant == 0 and stop == extent and step.constant == 1


# --- gather ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Index:
    """What runs along one axis of the source: `value` over the result's `axes`."""

    axis: int
    held: Held
    axes: tuple[int, ...]


def gather(
    c: Core, x: Held, indices: Sequence[Held], source: Sequence[tuple[str, int]],
    index_axes: Sequence[tuple[int, ...]], dims: Dims, hint: str,
) -> Held:  # fmt: skip
    """`result[...] = x[...]`, each axis of `x` led by an axis of the result or an index."""
    if x.const is not None:
        return x.reshaped(dims)
    found, plain = _sorted(c, x, indices, source, index_axes)
    data = c.whole(x)
    if not found:
        return permute(c, Held.whole(data, x.dtype, x.dims), _order(plain, dims), dims, hint)
    if len(found) == 1:
        return _one(c, data, x, found[0], source, dims, hint)
    return _many(c, data, x, found, plain, dims, hint)


def _order(plain: Sequence[tuple[int, int]], dims: Dims) -> list[int]:
    """For each result axis, the axis of the source that runs along it."""
    along = {result: axis for axis, result in plain}
    return [along[k] for k in range(len(dims))]


def _sorted(
    c: Core, x: Held, indices: Sequence[Held], source: Sequence[tuple[str, int]],
    index_axes: Sequence[tuple[int, ...]],
) -> tuple[list[_Index], list[tuple[int, int]]]:  # fmt: skip
    """The indexed axes, and `(axis, result axis)` of those that are only moved."""
    used = [axis for k, (how, n) in enumerate(source) if how == "index" for axis in index_axes[n]]
    lead = [n for how, n in source if how == "axis"]
    found: list[_Index] = []
    plain: list[tuple[int, int]] = []
    for axis, (how, n) in enumerate(source):
        if how == "index":
            found.append(_Index(axis, indices[n], index_axes[n]))
        elif n in used or lead.count(n) > 1:
            found.append(_Index(axis, iota(c, x.dims[axis], DType.I64), (n,)))
        else:
            plain.append((axis, n))
    return found, plain


def _one(
    c: Core, data: ir.Value, x: Held, index: _Index, source: Sequence[tuple[str, int]], dims: Dims,
    hint: str,
) -> Held:  # fmt: skip
    """One indexed axis: `Gather`, whose result has the index's axes where that axis was."""
    where = not_wrapping(c, index.held, x.dims[index.axis])
    made = c.b.node("Gather", [data, where], x.dtype, hint, axis=index.axis)
    lies: list[int] = []
    for axis, (_, n) in enumerate(source):
        lies.extend(index.axes if axis == index.axis else (n,))
    order = [lies.index(k) for k in range(len(dims))]
    return Held.whole(c.transpose(made, x.dtype, order), x.dtype, dims)


def _whole_index(c: Core, held: Held, extent: Dim, order: Sequence[int]) -> Held:
    """An index into an axis of this extent with its own axes in `order`, in `i64`."""
    value = not_wrapping(c, held, extent)
    dtype = DType.I32 if held.dtype is DType.I32 else DType.I64
    value = c.transpose(c.convert(value, dtype, DType.I64), DType.I64, order)
    return Held.whole(value, DType.I64, tuple(held.dims[k] for k in order))


def _many(
    c: Core, data: ir.Value, x: Held, found: Sequence[_Index], plain: Sequence[tuple[int, int]],
    dims: Dims, hint: str,
) -> Held:  # fmt: skip
    """Several: `GatherND` over the axes any index runs along, the rest of the source behind."""
    joint = sorted({axis for index in found for axis in index.axes})
    shape = tuple(dims[axis] for axis in joint)
    columns = []
    for index in found:
        order = sorted(range(len(index.axes)), key=lambda k: index.axes[k])
        held = _whole_index(c, index.held, x.dims[index.axis], order)
        places = [joint.index(index.axes[k]) for k in order]
        value = c.whole(c.placed(held, places, shape))
        columns.append(c.b.node("Unsqueeze", [value, c.b.integers(len(joint))], DType.I64))
    table = c.b.node("Concat", columns, DType.I64, f"{hint or 'gather'}/index", axis=len(joint))
    order = [index.axis for index in found] + [axis for axis, _ in plain]
    data = c.transpose(data, x.dtype, order)
    lies = [*joint, *(result for _, result in plain)]
    made = c.b.node("GatherND", [data, table], x.dtype, hint)
    back = [lies.index(k) for k in range(len(dims))]
    return Held.whole(c.transpose(made, x.dtype, back), x.dtype, dims)
