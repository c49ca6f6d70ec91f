"""Sums, extremes, running sums and contractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from linnet.dims import Dim, dmin
from linnet.dims.dim import is_at_least
from linnet.onnx.emit import views
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.dtypes import HALF, ONNX, carrier
from linnet.onnx.emit.graph import MICROSOFT, refusing
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.sizes import shape_of
from linnet.types import DType

Dims = tuple[Dim, ...]
Labels = tuple[int, ...]
_TOP = -(2**63)


def reduce(c: Core, kind: str, a: Held, axes: Sequence[int], dims: Dims, hint: str) -> Held:
    if not axes:
        return a.reshaped(dims)
    if kind in ("any", "all"):
        return Held.whole(_logical(c, kind, c.whole(a), axes, hint), DType.BOOL, dims)
    if kind in ("min", "max"):
        return Held.whole(_extreme(c, kind, a, axes, dims, hint), a.dtype, dims)
    if a.dtype.is_integer:
        return _integers(c, kind, a, axes, dims, hint)
    kernel = carrier("reduce", a.dtype)
    name = "ReduceSum" if kind == "sum" else "ReduceProd"
    made = _over(c, name, c.convert(c.whole(a), a.dtype, kernel), kernel, axes, hint)
    return Held.whole(c.convert(made, kernel, a.dtype), a.dtype, dims)


def _integers(c: Core, kind: str, a: Held, axes: Sequence[int], dims: Dims, hint: str) -> Held:
    """Wrapping sums and products. The runtime's own reductions of integers go through floats, so a
    sum is a product with ones, and a product is taken step by step."""
    kernel = DType.I64 if a.dtype.bits == 64 else DType.I32
    kept = [k for k in range(len(a.dims)) if k not in axes]
    count = Dim.of(1)
    for axis in axes:
        count = count * a.dims[axis]
    value = c.convert(c.whole(a), a.dtype, kernel)
    if kind == "sum":
        value = c.transpose(value, kernel, [*kept, *axes])
        value = c.reshape(value, kernel, [*dims, count])
        ones = c.whole(Held.number(1, kernel, (count,)))
        made = c.b.node("MatMul", [value, ones], kernel, hint)
    else:
        value = c.transpose(value, kernel, [*axes, *kept])
        made = _steps(c, c.reshape(value, kernel, [count, *dims]), kernel, count, dims, hint)
    return Held.whole(c.convert(made, kernel, a.dtype), a.dtype, dims)


def _steps(c: Core, value: ir.Value, kernel: DType, count: Dim, dims: Dims, hint: str) -> ir.Value:
    """The product over the first axis."""
    b = c.b
    first = c.whole(Held.number(1, kernel, dims))
    names = [b.fresh(f"{hint or 'product'}/{n}") for n in ("turn", "going", "sofar")]
    types = [(DType.I64, ()), (DType.BOOL, ()), (kernel, dims)]
    inputs = [
        ir.Value(name=name, type=ir.TensorType(ONNX[dtype]), shape=shape_of(shape))
        for name, (dtype, shape) in zip(names, types, strict=True)
    ]
    with b.inner() as scope:
        element = b.node("Gather", [value, inputs[0]], kernel, hint, axis=0)
        going = b.node("Identity", [inputs[1]], DType.BOOL, hint)
        sofar = b.node("Mul", [inputs[2], element], kernel, hint)
        sofar.shape, going.shape = shape_of(dims), shape_of(())
    body = ir.Graph(inputs, [going, sofar], nodes=scope.nodes, name="body")
    return b.node("Loop", [c.sizes.scalar(count), None, first], kernel, hint, body=body)


def _over(
    c: Core, op: str, value: ir.Value, dtype: DType, axes: Sequence[int], hint: str
) -> ir.Value:
    return c.b.node(op, [value, c.b.integers(*axes)], dtype, hint, keepdims=0)


def _logical(c: Core, kind: str, value: ir.Value, axes: Sequence[int], hint: str) -> ir.Value:
    """By counting, which is right over no elements too."""
    if kind == "all":
        value = c.b.node("Not", [value], DType.BOOL, hint)
    count = _over(c, "ReduceSum", c.convert(value, DType.BOOL, DType.I32), DType.I32, axes, hint)
    found = c.b.node("Greater", [count, c.scalar(0, DType.I32)], DType.BOOL, hint)
    return c.b.node("Not", [found], DType.BOOL, hint) if kind == "all" else found


def _extreme(c: Core, kind: str, a: Held, axes: Sequence[int], dims: Dims, hint: str) -> ir.Value:
    dtype, value = a.dtype, c.whole(a)
    turned = dtype is DType.U64  # with the top bit turned over the order is that of i64
    kernel = DType.I64 if turned else carrier("reduce", dtype)
    wide = c.convert(value, dtype, kernel)
    if turned:
        wide = c.b.node("BitwiseXor", [wide, c.scalar(_TOP, DType.I64)], DType.I64, hint)
    name = kind.capitalize()
    made = _over(c, f"Reduce{name}", wide, kernel, axes, hint)
    perhaps_empty = [axis for axis in axes if not is_at_least(a.dims[axis], 1)]
    if perhaps_empty:
        firsts = _firsts(c, kind, wide, kernel, perhaps_empty, dims, hint)
        first = _over(c, f"Reduce{name}", firsts, kernel, axes, hint)
        made = c.b.node(name, [made, first], kernel, hint)
    if dtype.is_float:  # the runtime's own reductions look for NaN in the first place only
        found = has_nan(c, wide, axes, hint)
        made = c.where(found, c.scalar(float("nan"), kernel), made, kernel)
    if turned:
        made = c.b.node("BitwiseXor", [made, c.scalar(_TOP, DType.I64)], DType.I64, hint)
    return c.convert(made, kernel, dtype)


def _firsts(
    c: Core, kind: str, value: ir.Value, dtype: DType, axes: Sequence[int], dims: Dims, hint: str
) -> ir.Value:
    """The first element along each of `axes`: where there is none the runtime refuses to look it
    up, whereas its reductions give the dtype's least or greatest number. Nothing is looked up
    where the result, of these `dims`, has no elements either."""
    size = prod(dims, start=Dim.of(1))
    index = c.whole(Held.number(0, DType.I64, (dmin(size, 1),)))
    for axis in axes:
        value = c.b.node("Gather", [value, index], dtype, hint, axis=axis)
        refusing(value, f"the {kind} of no elements has no value")
    return value


def has_nan(
    c: Core, value: ir.Value, axes: Sequence[int], hint: str, keep: bool = False
) -> ir.Value:
    """Whether there is a NaN along `axes`, which stay as axes of extent 1 where `keep` says so.
    Counting in f32 takes the runtime's fast sums: never 0 where there is one."""
    nan = c.convert(c.b.once("IsNaN", [value], DType.BOOL), DType.BOOL, DType.F32)
    inputs = [nan, c.b.integers(*axes)]
    count = c.b.node("ReduceSum", inputs, DType.F32, hint, keepdims=1 if keep else 0)
    return c.b.node("Greater", [count, c.scalar(0.0, DType.F32)], DType.BOOL, hint)


def cumsum(c: Core, a: Held, axis: int, hint: str) -> Held:
    kernel = carrier("reduce", a.dtype)
    value = c.convert(c.whole(a), a.dtype, kernel)
    made = c.b.node("CumSum", [value, c.scalar(axis, DType.I64)], kernel, hint)
    return Held.whole(c.convert(made, kernel, a.dtype), a.dtype, a.dims)


# --- contract -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """One operand of a contraction with the label of each axis."""

    held: Held
    labels: Labels

    @property
    def extents(self) -> dict[int, Dim]:
        return dict(zip(self.labels, self.held.dims, strict=True))


def contract(
    c: Core, a: Held, b: Held, left: Labels, right: Labels, output: Labels, dims: Dims, hint: str
) -> Held:
    """A sum of products as one matrix product, or elementwise where that says it better."""
    x, y = _Side(a, left), _Side(b, right)
    if a.dtype in HALF:  # each product is rounded to the dtype, then the sum once
        return _spread(c, x, y, output, dims, hint)
    x, y = _summed_alone(c, x, y, output, hint), _summed_alone(c, y, x, output, hint)
    inner = [k for k in x.labels if k in y.labels and k not in output]
    if not inner or set(x.labels) == set(y.labels):
        return _spread(c, x, y, output, dims, hint)
    kernel = carrier("matmul", a.dtype)
    made = _product(c, x, y, output, kernel, hint)
    return Held.whole(c.convert(made, kernel, a.dtype), a.dtype, dims)


def _summed_alone(c: Core, side: _Side, other: _Side, output: Labels, hint: str) -> _Side:
    """Sums over the labels that only this operand has and the result lacks."""
    labels = side.labels
    axes = [k for k, n in enumerate(labels) if n not in other.labels and n not in output]
    if not axes:
        return side
    kept = [k for k in range(len(labels)) if k not in axes]
    held = side.held
    dims = tuple(held.dims[k] for k in kept)
    return _Side(reduce(c, "sum", held, axes, dims, hint), tuple(labels[k] for k in kept))


def _product(c: Core, x: _Side, y: _Side, output: Labels, kernel: DType, hint: str) -> ir.Value:
    """`[batch, M, K] @ [batch, K, N]`, the labels of M, K and N flattened into one axis each."""
    left, right = x.labels, y.labels
    batch = tuple(k for k in output if k in left and k in right)
    inner = tuple(k for k in left if k in right and k not in output)
    rows = tuple(k for k in output if k in left and k not in right)
    columns = tuple(k for k in output if k in right and k not in left)
    lies = (*batch, *rows, *columns)
    extents = x.extents | y.extents
    plain = not batch and len(columns) == len(inner) == 1 and left == (*rows, *inner)
    if plain and kernel.is_float and len(right) == 2:
        made = _layer(c, x, y, rows, columns[0], extents, kernel, hint)
    else:
        p = _matrix(c, x, (batch, rows, inner), extents, kernel)
        q = _matrix(c, y, (batch, inner, columns), extents, kernel)
        made = c.b.node("MatMul", [p, q], kernel, hint)
        if len(rows) != 1 or len(columns) != 1:
            made = c.reshape(made, kernel, [extents[k] for k in lies], hint)
    return c.transpose(made, kernel, [lies.index(k) for k in output])


def _layer(
    c: Core, x: _Side, y: _Side, rows: Labels, column: int, extents: dict[int, Dim],
    kernel: DType, hint: str,
) -> ir.Value:  # fmt: skip
    """A layer's product: `Gemm` reads a weight `[out, in]` as it lies."""
    (inner,) = (k for k in x.labels if k in y.labels)
    transposed = 1 if y.labels == (column, inner) else 0
    if c.microsoft and len(rows) != 1:  # takes any rank as it is
        factors = [_value(c, x, kernel), _value(c, y, kernel)]
        return c.b.node("FusedMatMul", factors, kernel, hint, MICROSOFT, transB=transposed)
    count = _count(rows, extents)
    flat = views.reshape(c, x.held, (count, extents[inner]))
    factors = [c.convert(c.whole(flat), flat.dtype, kernel), _value(c, y, kernel)]
    made = c.b.node("Gemm", factors, kernel, hint, transB=transposed)
    held = Held.whole(made, kernel, (count, extents[column]))
    shape = (*(extents[k] for k in rows), extents[column])
    return c.whole(views.reshape(c, held, shape, hint))


def _value(c: Core, side: _Side, kernel: DType) -> ir.Value:
    return c.convert(c.whole(side.held), side.held.dtype, kernel)


def _count(labels: Sequence[int], extents: dict[int, Dim]) -> Dim:
    total = Dim.of(1)
    for label in labels:
        total = total * extents[label]
    return total


def _matrix(
    c: Core, side: _Side, groups: tuple[Labels, Labels, Labels], extents: dict[int, Dim],
    kernel: DType,
) -> ir.Value:  # fmt: skip
    """The operand as `[batch..., first, second]`, the last two flattened."""
    batch, first, second = groups
    order = [side.labels.index(k) for k in (*batch, *first, *second)]
    value = c.transpose(_value(c, side, kernel), kernel, order)
    if len(first) == 1 and len(second) == 1:
        return value
    shape = [*(extents[k] for k in batch), _count(first, extents), _count(second, extents)]
    return c.reshape(value, kernel, shape)


def _spread(c: Core, x: _Side, y: _Side, output: Labels, dims: Dims, hint: str) -> Held:
    """Every product, then the sum."""
    every = tuple(dict.fromkeys((*output, *x.labels, *y.labels)))
    extents = x.extents | y.extents
    shape = tuple(extents[k] for k in every)
    product = c.apply("Mul", "arithmetic", (_lined_up(c, x, every, shape),
                      _lined_up(c, y, every, shape)), shape, hint=hint)  # fmt: skip
    return reduce(c, "sum", product, range(len(output), len(every)), dims, hint)


def _lined_up(c: Core, side: _Side, every: Labels, shape: Dims) -> Held:
    """The operand with its axes in the order of `every`."""
    held, labels = side.held, side.labels
    if held.const is not None:
        return held.reshaped(shape)
    order = sorted(range(len(labels)), key=lambda k: every.index(labels[k]))
    if order != list(range(len(labels))):
        moved = tuple(held.dims[k] for k in order)
        held = Held.whole(c.transpose(c.whole(held), held.dtype, order), held.dtype, moved)
    return c.placed(held, [every.index(labels[k]) for k in order], shape)
