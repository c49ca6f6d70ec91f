"""Sums, extremes, scans and contractions."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.dims import Dim
from linnet.ir import Op
from linnet.native.emit.dtypes import HALF, dtype_of, held, literal, to_store
from linnet.native.emit.elementwise import binary_term, rounded
from linnet.native.emit.layout import dims_of
from linnet.native.emit.nest import Nest
from linnet.native.emit.values import Buffer, Scalar, Tensor, Term, is_unit
from linnet.native.emit.writer import Writer
from linnet.types import DType

_STEP = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}


def _start(op: str, dtype: DType) -> str:
    match op:
        case "sum":
            return literal(0.0 if dtype.is_float else 0, dtype)
        case "prod":
            return literal(1.0 if dtype.is_float else 1, dtype)
        case "any" | "all":
            return "false" if op == "any" else "true"
        case _ if dtype.is_float:
            return literal(float("-inf") if op == "max" else float("inf"), dtype)
        case _:
            low, high = dtype.integer_range
            return literal(low if op == "max" else high, dtype)


def _accumulated(kind: str, dtype: DType, total: str, term: Term) -> str:
    """The statement that takes one element in; 16-bit floats are summed in float."""
    wide = DType.F32 if dtype in HALF else dtype
    if dtype.is_float and kind in ("add", "mul"):
        return f"{total} {'+' if kind == 'add' else '*'}= {term.text};"
    return f"{total} = {binary_term(kind, wide, Term(total), term, '').text};"


def emit_reduce(w: Writer, op: Op) -> None:
    axes = tuple(op.attrs["axes"])
    x = w.tensor(op.operands[0])
    if not axes:
        w.define(op.result, x)
        return
    dtype, name = dtype_of(op.result.type), str(op.attrs["op"])
    shape, dims = dims_of(op.operands[0]), dims_of(op.result)
    if name in ("max", "min"):
        not_empty(w, [shape[axis] for axis in axes], dims, name)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    w.origin()
    out = w.result(op.result) if dims else None
    nest = Nest(w, [*(shape[a] for a in kept), *(shape[a] for a in axes)])
    index = [nest.index[[*kept, *axes].index(axis)] for axis in range(len(shape))]
    kind = _STEP[name]
    level = nest.axis_level[len(kept)]
    total = nest.fresh({"any": "found", "all": "every", "sum": "total"}.get(name, name), level)
    nest.before[level].append(f"{held(dtype)} {total} = {_start(name, dtype)};")
    term = nest.element(x, index)
    nest.inner(_accumulated(kind, dtype, total, term))
    if dtype.is_float and kind in ("add", "mul") and nest.depth > level:
        nest.pragmas[nest.depth - 1] = (
            f"omp simd reduction({'+' if kind == 'add' else '*'} : {total})"
        )
    result = f"to_{dtype}({total})" if dtype in HALF and kind in ("add", "mul") else total
    _finish(w, op, nest, level, out, dims, len(kept), result)


def _finish(
    w: Writer, op: Op, nest: Nest, level: int, out: Buffer | None, dims: Sequence[Dim], count: int,
    result: str,
) -> None:  # fmt: skip
    """Writes the nest, its result stored after the loops that are summed over."""
    dtype = dtype_of(op.result.type)
    if out is not None:
        place = nest.flat(dims, nest.index[:count])
        nest.after[level].append(f"{out.text}[{place.text}] = {to_store(dtype, result)};")
        nest.write()
        w.define(op.result, out)
        return
    nest.write()
    w.define(op.result, Scalar(result, dtype))


def not_empty(w: Writer, extents: Sequence[Dim], result: Sequence[Dim], name: str) -> None:
    """The largest of no elements has no value; of a result without elements none is asked for."""
    sizes = [w.size(dim) for dim in result]
    if any(size.constant == 0 for size in sizes):
        return
    asked = "".join(f" && {size.text} != 0" for size in sizes if size.constant is None)
    for dim in extents:
        size = w.size(dim)
        if size.constant is None or size.constant == 0:
            what = f'"the {name} of no elements has no value"'
            w.line(f"if ({size.text} == 0{asked}) fail({what}, {w.where});")


def emit_cumsum(w: Writer, op: Op) -> None:
    axis: int = op.attrs["axis"]
    x = w.tensor(op.operands[0])
    dtype, dims = dtype_of(op.result.type), dims_of(op.result)
    w.origin()
    out = w.result(op.result)
    order = [*(a for a in range(len(dims)) if a != axis), axis]
    nest = Nest(w, [dims[a] for a in order])
    index = [nest.index[order.index(a)] for a in range(len(dims))]
    level = nest.axis_level[-1]
    total = nest.fresh("running", level)
    nest.before[level].append(f"{held(dtype)} {total} = {_start('sum', dtype)};")
    nest.inner(_accumulated("add", dtype, total, nest.element(x, index)))
    result = rounded(dtype, total).text
    nest.inner(f"{out.text}[{nest.flat(dims, index).text}] = {to_store(dtype, result)};")
    nest.write()
    w.define(op.result, out)


# --- contract -------------------------------------------------------------------------------------


def emit_contract(w: Writer, op: Op) -> None:
    """Sums of products: the innermost loop runs along the last axis of an operand."""
    left, right = op.attrs["inputs"]
    output = tuple(op.attrs["output"])
    a, b = (w.repeated(v) for v in op.operands)
    extents: dict[int, Dim] = {}
    for labels, operand in ((left, op.operands[0]), (right, op.operands[1])):
        extents.update(zip(labels, dims_of(operand), strict=True))
    summed = [label for label in extents if label not in output]
    summed.sort(key=lambda label: (_last(left, label), _last(right, label)))
    w.origin()
    by_rows = (
        bool(output and summed)
        and dtype_of(op.result.type) not in HALF
        and not is_unit(extents[output[-1]])
        and not (_last(left, summed[-1]) and _last(right, summed[-1]))
        and (_last(left, output[-1]) or _last(right, output[-1]))
    )
    if by_rows:
        _by_rows(w, op, (a, b), (left, right), output, summed, extents)
    else:
        _by_elements(w, op, (a, b), (left, right), output, summed, extents)


def _last(labels: Sequence[int], label: int) -> bool:
    return bool(labels) and labels[-1] == label


def _product(nest: Nest, op: Op, parts: Sequence[Tensor], inputs: Sequence[Sequence[int]],
             order: Sequence[int]) -> Term:  # fmt: skip
    where = dict(zip(order, nest.index, strict=True))
    terms = [
        nest.element(part, [where[label] for label in labels])
        for part, labels in zip(parts, inputs, strict=True)
    ]
    return binary_term("mul", dtype_of(op.operands[0].type), terms[0], terms[1], "")


def _by_elements(
    w: Writer, op: Op, parts: Sequence[Tensor], inputs: Sequence[Sequence[int]],
    output: Sequence[int], summed: Sequence[int], extents: dict[int, Dim],
) -> None:  # fmt: skip
    dtype, dims = dtype_of(op.result.type), dims_of(op.result)
    order = [*output, *summed]
    out = w.result(op.result) if dims else None
    nest = Nest(w, [extents[label] for label in order])
    level = nest.axis_level[len(output)] if summed else nest.depth
    total = nest.fresh("total", level)
    nest.before[level].append(f"{held(dtype)} {total} = {_start('sum', dtype)};")
    term = _product(nest, op, parts, inputs, order)
    nest.inner(_accumulated("add", dtype, total, term))
    if dtype.is_float and nest.depth > level:
        nest.pragmas[nest.depth - 1] = f"omp simd reduction(+ : {total})"
    result = f"to_{dtype}({total})" if dtype in HALF else total
    _finish(w, op, nest, level, out, dims, len(output), result)


def _by_rows(
    w: Writer, op: Op, parts: Sequence[Tensor], inputs: Sequence[Sequence[int]],
    output: Sequence[int], summed: Sequence[int], extents: dict[int, Dim],
) -> None:  # fmt: skip
    """A row of the result at a time: the sum of rows of an operand, each times a number."""
    dtype, dims = dtype_of(op.result.type), dims_of(op.result)
    out = w.result(op.result)
    order = [*output[:-1], *summed, output[-1]]
    nest = Nest(w, [extents[label] for label in order])
    where = dict(zip(order, nest.index, strict=True))
    place = nest.flat(dims, [where[label] for label in output])
    w.line(f"std::memset({out.text}, 0, sizeof(*{out.text}) * {w.count(dims)});")
    term = _product(nest, op, parts, inputs, order)
    target = f"{out.text}[{place.text}]"
    nest.inner(_accumulated("add", dtype, target, term))
    if nest.depth:
        nest.pragmas[nest.depth - 1] = "omp simd"
    nest.write()
    w.define(op.result, out)
