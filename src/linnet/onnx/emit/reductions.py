"""Sums, extremes, running sums and contractions."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from linnet.dims import Dim
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.dtypes import HALF, carrier
from linnet.onnx.emit.held import Held
from linnet.types import DType

Dims = tuple[Dim, ...]
Labels = tuple[int, ...]
_TOP = -(2**63)


def reduce(c: Core, kind: str, a: Held, axes: Sequence[int], dims: Dims, hint: str) -> Held:
    if not axes:
        return a.reshaped(dims)
    value = c.whole(a)
    if kind in ("any", "all"):
        return Held.whole(_logical(c, kind, value, axes, hint), DType.BOOL, dims)
    if kind in ("min", "max"):
        return Held.whole(_extreme(c, kind, value, a.dtype, axes, hint), a.dtype, dims)
    kernel = carrier("reduce", a.dtype)
    name = "ReduceSum" if kind == "sum" else "ReduceProd"
    made = _over(c, name, c.convert(value, a.dtype, kernel), kernel, axes, hint)
    return Held.whole(c.convert(made, kernel, a.dtype), a.dtype, dims)


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


def _extreme(
    c: Core, kind: str, value: ir.Value, dtype: DType, axes: Sequence[int], hint: str
) -> ir.Value:
    name = "ReduceMin" if kind == "min" else "ReduceMax"
    if dtype is DType.U64:  # with the top bit turned over the order is that of i64
        top = c.scalar(_TOP, DType.I64)
        value = c.b.node("BitwiseXor", [c.convert(value, dtype, DType.I64), top], DType.I64, hint)
        made = _over(c, name, value, DType.I64, axes, hint)
        made = c.b.node("BitwiseXor", [made, top], DType.I64, hint)
        return c.convert(made, DType.I64, dtype)
    kernel = carrier("reduce", dtype)
    wide = c.convert(value, dtype, kernel)
    made = _over(c, name, wide, kernel, axes, hint)
    if c.exact and dtype.is_float:  # the runtime's own looks for NaN in the first place only
        nan = c.b.node("IsNaN", [wide], DType.BOOL, hint)
        count = _over(c, "ReduceSum", c.convert(nan, DType.BOOL, DType.I32), DType.I32, axes, hint)
        found = c.b.node("Greater", [count, c.scalar(0, DType.I32)], DType.BOOL, hint)
        made = c.b.node("Where", [found, c.scalar(float("nan"), kernel), made], kernel, hint)
    return c.convert(made, kernel, dtype)


def cumsum(c: Core, a: Held, axis: int, hint: str) -> Held:
    kernel = carrier("reduce", a.dtype)
    value = c.convert(c.whole(a), a.dtype, kernel)
    made = c.b.node("CumSum", [value, c.scalar(axis, DType.I64)], kernel, hint)
    return Held.whole(c.convert(made, kernel, a.dtype), a.dtype, a.dims)


# --- contract -------------------------------------------------------------------------------------


def contract(
    c: Core, a: Held, b: Held, left: Labels, right: Labels, output: Labels, dims: Dims, hint: str
) -> Held:
    """A sum of products as one matrix product, or elementwise where nothing else will do."""
    dtype = a.dtype
    if dtype in HALF:
        return _rounded(c, a, b, left, right, output, dims, hint)
    kernel = carrier("matmul", dtype)
    summed = [k for k in dict.fromkeys((*left, *right)) if k not in output]
    if all((k in left) != (k in right) for k in summed) or (set(left) == set(right) and not _inner(
            left, output)):  # fmt: skip
        return _spread(c, a, b, left, right, output, dims, kernel, hint)
    x, left = _summed_alone(c, a, left, right, output, kernel, hint)
    y, right = _summed_alone(c, b, right, left, output, kernel, hint)
    made = _product(c, x, y, left, right, output, kernel, hint, a, b)
    return Held.whole(c.convert(made, kernel, dtype), dtype, dims)


def _inner(left: Labels, output: Labels) -> bool:
    return False


def _summed_alone(
    c: Core, a: Held, own: Labels, other: Labels, output: Labels, kernel: DType, hint: str
) -> tuple[ir.Value, Labels]:
    """Sums over the labels that only this operand has and the result lacks."""
    value = c.convert(c.whole(a), a.dtype, kernel)
    axes = [k for k, label in enumerate(own) if label not in other and label not in output]
    if not axes:
        return value, own
    kept = tuple(label for k, label in enumerate(own) if k not in axes)
    return _over(c, "ReduceSum", value, kernel, axes, hint), kept


def _extents(a: Held, b: Held, left: Labels, right: Labels) -> dict[int, Dim]:
    extents: dict[int, Dim] = {}
    for label, dim in (*zip(left, a.dims, strict=True), *zip(right, b.dims, strict=True)):
        extents.setdefault(label, dim)
    return extents


def _product(
    c: Core, x: ir.Value, y: ir.Value, left: Labels, right: Labels, output: Labels, kernel: DType,
    hint: str, a: Held, b: Held,
) -> ir.Value:  # fmt: skip
    """`[batch, M, K] @ [batch, K, N]` with the labels of each kind flattened into one axis."""
    extents: dict[int, Dim] = {}
    for held, labels in ((a, _labels_of(a, left)), (b, _labels_of(b, right))):
        del held, labels
    extents = c_extents(a, b, left, right)
    batch = tuple(k for k in output if k in left and k in right)
    inner = tuple(k for k in left if k in right and k not in output)
    rows = tuple(k for k in output if k in left and k not in right)
    columns = tuple(k for k in output if k in right and k not in left)
    lies = (*batch, *rows, *columns)
    if not batch and kernel in (DType.F32, DType.F64) and len(columns) == 1 and len(inner) == 1 and (
        left == (*rows, *inner)
    ):
        made = _linear(c, x, y, left, right, rows, columns[0], inner[0], extents, kernel, hint)
    else:
        p = _matrix(c, x, left, (batch, rows, inner), extents, kernel)
        q = _matrix(c, y, right, (batch, inner, columns), extents, kernel)
        made = c.b.node("MatMul", [p, q], kernel, hint)
        made = c.reshape(made, kernel, [extents[k] for k in lies], hint)
    order = [lies.index(k) for k in output]
    return c.transpose(made, kernel, order)


def _labels_of(a: Held, labels: Labels) -> Labels:
    return labels


def c_extents(a: Held, b: Held, left: Labels, right: Labels) -> dict[int, Dim]:
    return a_extents(a, left) | a_extents(b, right)


def a_extents(a: Held, labels: Labels) -> dict[int, Dim]:
    return dict(zip(labels, a.dims, strict=False))


def _linear(
    c: Core, x: ir.Value, y: ir.Value, left: Labels, right: Labels, rows: Labels, column: int,
    inner: int, extents: dict[int, Dim], kernel: DType, hint: str,
) -> ir.Value:  # fmt: skip
    """A layer's product: `Gemm` reads a weight `[out, in]` as it lies."""
    flat = x
    if len(rows) != 1:
        flat = c.reshape(x, kernel, [_count(rows, extents), extents[inner]])
    transposed = 1 if right == (column, inner) else 0
    made = c.b.node("Gemm", [flat, y], kernel, hint, transB=transposed)
    if len(rows) == 1:
        return made
    return c.reshape(made, kernel, [*(extents[k] for k in rows), extents[column]], hint)


def _count(labels: Sequence[int], extents: dict[int, Dim]) -> Dim:
    total = Dim.of(1)
    for label in labels:
        total = total * extents[label]
    return total


def _matrix(
    c: Core, value: ir.Value, labels: Labels, groups: tuple[Labels, Labels, Labels],
    extents: dict[int, Dim], kernel: DType,
) -> ir.Value:  # fmt: skip
    """`value` as `[batch..., first, second]`, the last two flattened."""
    batch, first, second = groups
    order = [labels.index(k) for k in (*batch, *first, *second)]
    value = c.transpose(value, kernel, order)
    if len(first) == 1 and len(second) == 1:
        return value
    shape = [*(extents[k] for k in batch), _count(first, extents), _count(second, extents)]
    return c.reshape(value, kernel, shape)


def _spread(
    c: Core, a: Held, b: Held, left: Labels, right: Labels, output: Labels, dims: Dims,
    kernel: DType, hint: str,
) -> Held:  # fmt: skip
    """Every product, then the sum: for products with no inner axis, and where each is rounded."""
    every = tuple(dict.fromkeys((*output, *left, *right)))
    extents = c_extents(a, b, left, right)
    shape = tuple(extents[k] for k in every)
    x, y = (_lined_up(c, h, labels, every, shape) for h, labels in ((a, left), (b, right)))
    product = c.apply("Mul", "arithmetic", (x, y), shape, hint=hint)
    summed = list(range(len(output), len(every)))
    if not summed:
        return product.reshaped(dims)
    value = c.convert(c.whole(product), a.dtype, kernel)
    made = _over(c, "ReduceSum", value, kernel, summed, hint)
    return Held.whole(c.convert(made, kernel, a.dtype), a.dtype, dims)


def _lined_up(c: Core, a: Held, labels: Labels, every: Labels, shape: Dims) -> Held:
    """`a` with its axes in the order of `every`."""
    if a.const is not None:
        return a.reshaped(shape)
    order = sorted(range(len(labels)), key=lambda k: every.index(labels[k]))
    if order == list(range(len(labels))):
        moved = a
    else:
        moved = Held.whole(c.transpose(c.whole(a), a.dtype, order), a.dtype,
                           tuple(a.dims[k] for k in order))  # fmt: skip
    return c.placed(moved, [every.index(labels[k]) for k in order], shape)


def _rounded(
    c: Core, a: Held, b: Held, left: Labels, right: Labels, output: Labels, dims: Dims, hint: str
) -> Held:
    """f16 and bf16: each product is rounded to the dtype, then the sum once."""
    return _spread(c, a, b, left, right, output, dims, DType.F32, hint)
