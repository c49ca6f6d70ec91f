"""Operations on corresponding elements: dtypes brought together, shapes aligned.

Outside index notation shapes broadcast right-aligned; inside it axes with one label are one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from linnet.diagnostics import Span
from linnet.dims import Dim, DimError, Relation
from linnet.elaborate.advice import describe_facts, where_help
from linnet.elaborate.context import Context
from linnet.elaborate.literals import as_float, float_arithmetic, int_arithmetic
from linnet.elaborate.operands import (
    BROKEN,
    ErrorOperand,
    FloatOperand,
    IntOperand,
    Label,
    LabelledOperand,
    NoneOperand,
    Number,
    Operand,
    SomeOperand,
    SubOperand,
    ValueOperand,
)
from linnet.ir import OPS, Value
from linnet.types import (
    AnyDType,
    DType,
    PackVar,
    Shape,
    ShapeItem,
    TensorType,
    Type,
    dtypes_of,
)

BINARY_OPS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem",
    "&": "and", "|": "or", "^": "xor", "&&": "and", "||": "or",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
}  # fmt: skip
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def tensor_of(ctx: Context, operand: Operand, span: Span) -> Value | None:
    """The operand's value when it is a tensor or scalar; None after reporting."""
    match operand:
        case ErrorOperand():
            return None
        case ValueOperand(value) | LabelledOperand(value):
            if isinstance(value.type, TensorType):
                return value
            ctx.report("E2104", f"this needs a tensor, not `{value.type}`", span)
            return None
        case IntOperand() | FloatOperand() | NoneOperand() | SomeOperand() | SubOperand():
            return ctx.coerce(operand, None, span)
        case _:
            assert_never(operand)


def common_dtype(
    ctx: Context, operands: Sequence[Operand], spans: Sequence[Span], hint: Type | None = None
) -> tuple[AnyDType, list[Operand]] | None:
    """Gives flexible operands the dtype of the others, which must agree (E2103)."""
    dtype: AnyDType | None = None
    first: Span | None = None
    for operand, span in zip(operands, spans, strict=True):
        if isinstance(operand, IntOperand | FloatOperand):
            continue
        value = tensor_of(ctx, operand, span)
        if value is None:
            return None
        found = _tensor_type(value).dtype
        if dtype is None:
            dtype, first = found, span
        elif dtype != found:
            ctx.report(
                "E2103",
                f"the dtypes `{dtype}` and `{found}` differ",
                span,
                label=f"this is `{found}`",
                related=[(first, f"this is `{dtype}`")],
                help=f"convert one: `cast<{dtype}>(...)`",
            )
            return None
    if dtype is None:
        dtype = _flexible_dtype(operands, hint)
    result: list[Operand] = []
    for operand, span in zip(operands, spans, strict=True):
        if isinstance(operand, IntOperand | FloatOperand):
            value = ctx.literal(operand, dtype, span)
            if value is None:
                return None
            operand = ValueOperand(value)
        result.append(operand)
    return dtype, result


def _flexible_dtype(operands: Sequence[Operand], hint: Type | None) -> AnyDType:
    has_float = any(isinstance(operand, FloatOperand) for operand in operands)
    hinted = hint.dtype if isinstance(hint, TensorType) and hint.dtype.is_numeric else None
    if hinted is not None and (hinted.is_float or not has_float):
        return hinted
    return DType.F64 if has_float else DType.I64


def _tensor_type(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def align(
    ctx: Context, operands: Sequence[Operand], span: Span
) -> tuple[list[Value], Shape, tuple[Label, ...] | None] | None:
    """Values of one shape, that shape, and its labels in notation."""
    labels = {
        label: None
        for operand in operands
        if isinstance(operand, LabelledOperand)
        for label in operand.labels
    }
    values: list[Value] = []
    if any(isinstance(operand, LabelledOperand) for operand in operands):
        order = tuple(sorted(labels, key=lambda label: label.order))
        for operand in operands:
            if isinstance(operand, LabelledOperand):
                values.append(spread(ctx, operand, order, span))
            elif isinstance(operand, ValueOperand):
                values.append(spread(ctx, LabelledOperand(operand.value, ()), order, span))
        return values, label_shape(order), order
    values = [operand.value for operand in operands if isinstance(operand, ValueOperand)]
    shape = broadcast_shape(ctx, [_tensor_type(value).shape for value in values], span)
    if shape is None:
        return None
    return [stretch(ctx, value, shape, span) for value in values], shape, None


def label_shape(labels: Sequence[Label]) -> Shape:
    return tuple(item for label in labels for item in label.extent or ())


def spread(ctx: Context, operand: LabelledOperand, order: Sequence[Label], span: Span) -> Value:
    """The value with its axes in `order`, repeated along labels it lacks."""
    value = sort_axes(ctx, operand, order, span)
    shape = label_shape(order)
    present = [label for label in order if label in operand.labels]
    if len(present) == len(order):
        return value
    axes: list[int] = []
    at = 0
    for label in order:
        width = len(label.extent or ())
        if label in operand.labels:
            axes.extend(range(at, at + width))
        at += width
    type_ = _tensor_type(value).with_shape(shape)
    return ctx.emit("broadcast", (value,), type_, span, {"axes": tuple(axes)})


def sort_axes(ctx: Context, operand: LabelledOperand, order: Sequence[Label], span: Span) -> Value:
    """The value with the axes it has in the order of `order`."""
    wanted = [label for label in order if label in operand.labels]
    if list(operand.labels) == wanted:
        return operand.value
    starts: dict[Label, int] = {}
    at = 0
    for label in operand.labels:
        starts[label] = at
        at += len(label.extent or ())
    permutation = tuple(
        starts[label] + offset for label in wanted for offset in range(len(label.extent or ()))
    )
    type_ = _tensor_type(operand.value)
    shape = tuple(type_.shape[item] for item in permutation)
    if permutation == tuple(range(len(permutation))):
        return operand.value
    return ctx.emit(
        "permute", (operand.value,), type_.with_shape(shape), span, {"order": permutation}
    )


def broadcast_shape(ctx: Context, shapes: Sequence[Shape], span: Span) -> Shape | None:
    """The right-aligned common shape; None after reporting E2207."""
    result: list[ShapeItem] = []
    longest = max(map(len, shapes), default=0)
    for back in range(1, longest + 1):
        item: ShapeItem | None = None
        for shape in shapes:
            if len(shape) < back:
                continue
            joined = shape[-back] if item is None else _join(ctx, item, shape[-back])
            if joined is None:
                _broadcast_error(ctx, shapes, item, shape[-back], span)
                return None
            item = joined
        assert item is not None
        result.append(item)
    return tuple(reversed(result))


def _join(ctx: Context, a: ShapeItem, b: ShapeItem) -> ShapeItem | None:
    if isinstance(a, PackVar) or isinstance(b, PackVar):
        return a if a == b else None
    if ctx.equal_dims(a, b):
        return a
    if a.constant == 1:
        return b
    return a if b.constant == 1 else None


def _broadcast_error(
    ctx: Context,
    shapes: Sequence[Shape],
    a: ShapeItem | None,
    b: ShapeItem,
    span: Span,
) -> None:
    shown = " and ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes if shape)
    help_ = None
    if isinstance(a, Dim) and isinstance(b, Dim):
        help_ = where_help(ctx.facts, Relation(a, "==", b))
    ctx.report(
        "E2207",
        f"the shapes {shown} do not broadcast: `{a}` and `{b}` are not known to be equal",
        span,
        notes=describe_facts(ctx.facts),
        help=help_,
    )


def stretch(ctx: Context, value: Value, shape: Shape, span: Span) -> Value:
    """`value` broadcast to `shape`; a value of that shape stays as it is."""
    type_ = _tensor_type(value)
    if type_.shape == shape:
        return value
    if len(type_.shape) == len(shape) and ctx.same_shape(type_.shape, shape):
        return ctx.emit("reshape", (value,), type_.with_shape(shape), span, name=value.name)
    first = len(shape) - len(type_.shape)
    axes = tuple(range(first, len(shape)))
    return ctx.emit("broadcast", (value,), type_.with_shape(shape), span, {"axes": axes})


def elementwise(
    ctx: Context,
    kind: str,
    operands: Sequence[Operand],
    dtype: AnyDType,
    span: Span,
) -> Operand:
    """Aligns typed operands and applies `kind`, giving elements of `dtype`."""
    aligned = align(ctx, operands, span)
    if aligned is None:
        return BROKEN
    values, shape, labels = aligned
    result = ctx.emit(kind, tuple(values), TensorType(shape, dtype), span)
    return ValueOperand(result) if labels is None else LabelledOperand(result, labels)


def allows(kind: str, dtype: AnyDType) -> bool:
    """Whether operation `kind` takes every dtype that `dtype` may stand for."""
    rule = OPS[kind].dtypes
    concrete = dtypes_of(dtype)
    match rule:
        case "any":
            return True
        case "numeric":
            return all(d.is_numeric for d in concrete)
        case "integer":
            return all(d.is_integer for d in concrete)
        case "float":
            return all(d.is_float for d in concrete)
        case "bool":
            return concrete == {DType.BOOL}
        case "integer_or_bool":
            return all(d.is_integer or d is DType.BOOL for d in concrete)


def binary(
    ctx: Context,
    op: str,
    left: Operand,
    right: Operand,
    spans: tuple[Span, Span, Span],
    hint: Type | None,
) -> Operand:
    """`left op right`; `spans` are the left side's, the right side's and the whole's."""
    left_span, right_span, span = spans
    if isinstance(left, ErrorOperand) or isinstance(right, ErrorOperand):
        return BROKEN
    if isinstance(left, IntOperand | FloatOperand) and isinstance(right, IntOperand | FloatOperand):
        folded = fold(ctx, op, left, right, right_span, span)
        if folded is not None:
            return folded
    typed = common_dtype(ctx, (left, right), (left_span, right_span), hint)
    if typed is None:
        return BROKEN
    dtype, operands = typed
    kind = BINARY_OPS.get(op, op)
    if op in ("&&", "||") and not _scalar_bools(ctx, op, operands, dtype, span):
        return BROKEN
    if not allows(kind, dtype):
        ctx.report(
            "E2104",
            f"`{op}` does not take `{dtype}`",
            span,
            help="use `&&`, `||` or `^` on bool" if dtype is DType.BOOL else None,
        )
        return BROKEN
    return elementwise(ctx, kind, operands, DType.BOOL if kind in COMPARISONS else dtype, span)


def _scalar_bools(
    ctx: Context, op: str, operands: Sequence[Operand], dtype: AnyDType, span: Span
) -> bool:
    scalar = all(
        isinstance(operand, LabelledOperand)
        or (isinstance(operand, ValueOperand) and _tensor_type(operand.value).is_scalar)
        for operand in operands
    )
    if scalar and dtype is DType.BOOL:
        return True
    help_ = f"use `{op[0]}` on whole tensors" if not scalar else "compare first, as in `x > 0`"
    ctx.report("E2116", f"`{op}` works on scalar `bool` only", span, help=help_)
    return False


def fold(
    ctx: Context, op: str, left: Number, right: Number, right_span: Span, span: Span
) -> Operand | None:
    """Compile-time arithmetic; None when the operator or the operands call for run time."""
    if isinstance(left, IntOperand) and isinstance(right, IntOperand):
        if op in ("/", "%") and not _positive(ctx, right.dim, right_span):
            return BROKEN
        try:
            dim = int_arithmetic(op, left.dim, right.dim)
        except DimError as error:
            ctx.world.too_large(error, span)
            return BROKEN
        return IntOperand(dim) if dim is not None else None
    x, y = as_float(left), as_float(right)
    if x is None or y is None or op == "%":
        return None
    value = float_arithmetic(op, x, y)
    return FloatOperand(value) if value is not None else None


def _positive(ctx: Context, divisor: Dim, span: Span) -> bool:
    return ctx.prove(
        Relation(divisor, ">", Dim.of(0)),
        "E2205",
        f"the divisor `{divisor}` is not known to be positive",
        span,
    )
