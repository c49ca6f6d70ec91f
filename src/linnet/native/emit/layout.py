"""Operations that move elements: views are index arithmetic, concatenation is copying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linnet.dims import Dim
from linnet.ir import Op, Value
from linnet.native.emit.dtypes import dtype_of, loaded, to_store
from linnet.native.emit.nest import ZERO, Nest
from linnet.native.emit.values import (
    Buffer,
    Dims,
    Lazy,
    Scalar,
    Strided,
    Tensor,
    Term,
    cost_of,
    depth_of,
    fails_of,
    is_unit,
    roots_of,
)
from linnet.native.emit.writer import Writer
from linnet.types import TensorType


def dims_of(value: Value) -> Dims:
    type_ = value.type
    assert isinstance(type_, TensorType)
    return type_.dims


def view(
    part: Tensor, dims: Dims, make: object, extra: int = 0, name: str = "",
    strided: Strided | None = None,
) -> Lazy:  # fmt: skip
    """A lazy tensor that reads `part` elsewhere."""
    return Lazy(
        part.dtype, dims, make, cost_of(part) + extra, depth_of(part) + 1,  # type: ignore[arg-type]
        roots_of(part), fails_of(part), name, strided=strided,
    )  # fmt: skip


def strided_of(w: Writer, part: Tensor) -> Strided | None:
    """The tensor as memory with steps, where it is that."""
    if isinstance(part, Buffer):
        steps = tuple(w.count(part.dims[k + 1 :]) for k in range(len(part.dims)))
        return Strided(part.text, steps)
    return part.strided if isinstance(part, Lazy) else None


def _times(a: str, b: str) -> str:
    if "1" in (a, b):
        return a if b == "1" else b
    return f"product({a}, {b})"


def emit_broadcast(w: Writer, op: Op) -> None:
    axes: tuple[int, ...] = op.attrs["axes"]
    operand = op.operands[0]
    dims, source = dims_of(op.result), dims_of(operand)
    repeats_outer = any(
        not is_unit(dim) and not (at in axes and source[axes.index(at)] == dim)
        for at, dim in enumerate(dims)
        if any(axis > at and not is_unit(source[k]) for k, axis in enumerate(axes))
    )
    part = w.repeated(operand) if repeats_outer else w.tensor(operand)
    if isinstance(part, Scalar):
        term = part.term
        w.define(op.result, Lazy(part.dtype, dims, lambda nest, index: term))
        return
    if not isinstance(part, Lazy) and _same(source, dims):
        w.define(op.result, Buffer(part.text, part.dtype, dims, part.root))
        return

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        places = [
            _stretched(nest, index[axis], source[k], dims[axis]) for k, axis in enumerate(axes)
        ]
        return nest.element(part, places)

    w.define(op.result, view(part, dims, element))


def _stretched(nest: Nest, at: Term, have: Dim, want: Dim) -> Term:
    if is_unit(have):
        return ZERO
    if have == want or at.text == "0":
        return at
    size = nest.w.size(have)  # equal to what is wanted, or 1
    return Term(f"({size.factor} == 1 ? 0 : {at.text})", at.level)


def _same(a: Dims, b: Dims) -> bool:
    """Whether the two shapes lay their elements out alike."""
    return [d for d in a if not is_unit(d)] == [d for d in b if not is_unit(d)]


# --- reshape --------------------------------------------------------------------------------------


def emit_reshape(w: Writer, op: Op) -> None:
    operand = op.operands[0]
    part = w.tensor(operand)
    dims = dims_of(op.result)
    w.define(op.result, reshaped(w, part, dims, operand, op.result))


def reshaped(w: Writer, part: Tensor, dims: Dims, operand: Value, result: Value) -> Tensor:
    if isinstance(part, Scalar):
        if not dims:
            return part
        term = part.term
        return Lazy(part.dtype, dims, lambda nest, index: term)
    if isinstance(part, Lazy):
        form = next((form for form in part.forms if form.dims == dims), None)
        if form is not None:
            return form
    groups = None if isinstance(part, Buffer) else _groups(part.dims, dims)
    if isinstance(part, Lazy) and groups is None:
        part = w.in_memory(part, operand.name or result.name)
        w.env[operand] = part
    if isinstance(part, Buffer):
        if not dims:
            return Scalar(loaded(part.dtype, f"{part.text}[0]"), part.dtype)
        return Buffer(part.text, part.dtype, dims, part.root)
    found, source = groups or (), part

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        places = [ZERO] * len(source.dims)
        for axis, parts in found:
            if axis is not None:
                places[axis] = nest.flat([dims[k] for k in parts], [index[k] for k in parts])
        return nest.element(source, places)

    return view(source, dims, element, strided=_split(w, source, dims, found))


def _split(
    w: Writer, source: Lazy, dims: Dims, groups: Sequence[tuple[int | None, tuple[int, ...]]]
) -> Strided | None:
    """The steps of a tensor whose axes are split."""
    have = strided_of(w, source)
    if have is None:
        return None
    steps = ["0"] * len(dims)
    for axis, parts in groups:
        for number, part in enumerate(parts):
            if axis is None:
                return None
            steps[part] = _times(have.steps[axis], w.count([dims[k] for k in parts[number + 1 :]]))
    return Strided(have.text, tuple(steps))


def _groups(source: Dims, dims: Dims) -> tuple[tuple[int | None, tuple[int, ...]], ...] | None:
    """For each axis of the operand the result's axes that it is split into, row-major; None where
    axes of the operand are joined, which takes divisions."""
    found: list[tuple[int | None, tuple[int, ...]]] = []
    at = 0
    rest = [k for k, dim in enumerate(dims) if not is_unit(dim)]
    for axis, extent in enumerate(source):
        if is_unit(extent):
            continue
        product = Dim.of(1)
        parts: list[int] = []
        while product != extent:
            if at == len(rest) or len(parts) > 8:
                return None
            parts.append(rest[at])
            product = product * dims[rest[at]]
            at += 1
        found.append((axis, tuple(parts)))
    return tuple(found) if at == len(rest) else None


# --- permute, slice, concat -----------------------------------------------------------------------


def emit_permute(w: Writer, op: Op) -> None:
    order: tuple[int, ...] = op.attrs["order"]
    part = w.tensor(op.operands[0])
    dims = dims_of(op.result)
    if isinstance(part, Scalar):
        w.define(op.result, part)
        return
    if isinstance(part, Lazy) and part.turned is not None:  # turned twice is perhaps turned back
        memory, was = part.turned
        part, order = memory, tuple(was[axis] for axis in order)
    moving = [axis for axis in order if not is_unit(part.dims[axis])]
    if isinstance(part, Buffer) and moving == sorted(moving):
        w.define(op.result, Buffer(part.text, part.dtype, dims, part.root))
        return

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        places = [ZERO] * len(order)
        for k, axis in enumerate(order):
            places[axis] = index[k]
        return nest.element(part, places)

    have = strided_of(w, part)
    turned = None
    if have is not None:
        turned = Strided(have.text, tuple(have.steps[axis] for axis in order))
    w.define(op.result, view(part, dims, element, strided=turned))


@dataclass(frozen=True, slots=True)
class _Cut:
    start: Dim
    step: Dim


def emit_slice(w: Writer, op: Op) -> None:
    part = w.tensor(op.operands[0])
    dims = dims_of(op.result)
    if isinstance(part, Scalar):
        w.define(op.result, part)
        return
    piece = _piece(part, dims, op.attrs["bounds"]) if isinstance(part, Lazy) else None
    if piece is not None:
        w.define(op.result, piece)
        return
    zero, one = Dim.of(0), Dim.of(1)
    cuts = [
        _Cut(zero, one) if bound is None else _Cut(Dim.of(bound[0]), Dim.of(bound[2]))
        for bound in op.attrs["bounds"]
    ]
    whole = [
        cut.start == zero and (have == want or is_unit(have))
        for cut, have, want in zip(cuts, part.dims, dims, strict=True)
    ]
    if isinstance(part, Buffer) and _leading(w, op, part, dims, cuts, whole):
        return

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        places = [_moved(nest, at, cut) for at, cut in zip(index, cuts, strict=True)]
        return nest.element(part, places)

    w.define(op.result, view(part, dims, element, strided=_cut_out(w, part, cuts)))


def _cut_out(w: Writer, part: Tensor, cuts: Sequence[_Cut]) -> Strided | None:
    """The steps of a slice without steps of its own."""
    have = strided_of(w, part)
    if have is None or any(cut.step != Dim.of(1) for cut in cuts):
        return None
    text = have.text
    for step, cut in zip(have.steps, cuts, strict=True):
        start = w.size(cut.start)
        if start.constant != 0:
            text += f" + {_times(start.text, step)}"
    return Strided(text if text == have.text else f"({text})", have.steps)


def _piece(part: Lazy, dims: Dims, bounds: Sequence[tuple[Dim, Dim, Dim] | None]) -> Tensor | None:
    """What the slice takes, where that is a piece that the tensor was made from."""
    for piece in part.pieces:
        bound = bounds[piece.axis]
        rest = [k for k in range(len(dims)) if k != piece.axis]
        if (
            bound is not None
            and Dim.of(bound[0]) == piece.start
            and Dim.of(bound[2]) == Dim.of(1)
            and dims[piece.axis] == piece.extent
            and all(dims[k] == part.dims[k] for k in rest)
        ):
            return piece.entry
    return None


def _leading(
    w: Writer, op: Op, part: Buffer, dims: Dims, cuts: Sequence[_Cut], whole: Sequence[bool]
) -> bool:
    """Defines the slice as dense memory where it cuts the first axis that has an extent alone."""
    partial = [k for k, all_of_it in enumerate(whole) if not all_of_it]
    if not partial:
        w.define(op.result, Buffer(part.text, part.dtype, dims, part.root))
        return True
    first = next((k for k, dim in enumerate(part.dims) if not is_unit(dim)), 0)
    if partial != [first] or cuts[first].step != Dim.of(1):
        return False
    row = w.count(part.dims[first + 1 :])
    start = w.size(cuts[first].start)
    text = part.text if start.constant == 0 else f"({part.text} + {start.factor} * {row})"
    w.define(op.result, Buffer(text, part.dtype, dims, part.root))
    return True


def _moved(nest: Nest, at: Term, cut: _Cut) -> Term:
    start, step = nest.w.size(cut.start), nest.w.size(cut.step)
    if at.text == "0":
        return Term(start.text, 0, start.atomic)
    text, atomic = at.text, at.atomic
    if step.constant != 1:
        text, atomic = f"{at.operand} * {step.factor}", False
    if start.constant != 0:
        text, atomic = f"{text} + {start.factor}", False
    return Term(text, at.level, atomic)


def emit_concat(w: Writer, op: Op) -> None:
    axis: int = op.attrs["axis"]
    dims = dims_of(op.result)
    parts = [w.tensor(v) for v in op.operands]
    w.origin()
    out = w.result(op.result)
    before = Dim.of(0)
    for part, operand in zip(parts, op.operands, strict=True):
        shape = dims_of(operand)
        nest = Nest(w, shape)
        term = nest.element(part, nest.index, last=True)
        index = list(nest.index)
        index[axis] = _moved(nest, index[axis], _Cut(before, Dim.of(1)))
        place = nest.flat(dims, index)
        nest.inner(f"{out.text}[{place.text}] = {to_store(out.dtype, term.text)};")
        if nest.depth:
            nest.pragmas[nest.depth - 1] = "omp simd"
        nest.write()
        before = before + shape[axis]
    w.define(op.result, out)


def emit_gather(w: Writer, op: Op) -> None:
    source: tuple[tuple[str, int], ...] = op.attrs["source"]
    index_axes: tuple[tuple[int, ...], ...] = op.attrs["index_axes"]
    x = w.repeated(op.operands[0])
    indices = [w.tensor(v) for v in op.operands[1:]]
    dims, dtype = dims_of(op.result), dtype_of(op.result.type)
    extents = dims_of(op.operands[0])
    where = w.where

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        places: list[Term] = []
        for axis, (how, number) in enumerate(source):
            if how == "axis":
                places.append(index[number])
                continue
            part = indices[number]
            at = nest.element(part, [index[a] for a in index_axes[number]])
            places.append(checked(nest, part, at, extents[axis], where))
        return nest.element(x, places)

    fails = any(how == "index" for how, _ in source)
    cost = cost_of(x) + sum(map(cost_of, indices)) + (2 if fails else 0)
    roots = roots_of(x).union(*map(roots_of, indices))
    depth = 1 + max(depth_of(x), *map(depth_of, indices), 0)
    made = Lazy(dtype, dims, element, cost, depth, roots, fails, op.result.name)
    w.define(op.result, made)


def checked(nest: Nest, part: Tensor, at: Term, extent: Dim, where: str) -> Term:
    """The index, after a check that it lies on its axis."""
    size = nest.w.size(extent)
    known = part.const if isinstance(part, Scalar) else None
    if known is not None and size.constant is not None and 0 <= int(known) < size.constant:
        return Term(str(int(known)), 0)
    key = ("at", at.text, size.text, where)
    if key not in nest.memo:
        text = f"at({at.text}, {size.text}, {where})"
        nest.memo[key] = nest.failing("int64_t", text, at.level, "place")
    return nest.memo[key]
