"""Calls of prelude functions."""

from __future__ import annotations

from collections.abc import Callable

from linnet.dims import Dim, Relation
from linnet.elaborate.advice import where_help
from linnet.elaborate.arguments import match_arguments
from linnet.elaborate.context import BROKEN, Context, shape_text
from linnet.elaborate.elementwise import (
    allows,
    binary,
    broadcast_shape,
    common_dtype,
    elementwise,
    stretch,
    tensor_of,
)
from linnet.elaborate.generic_args import generic_args
from linnet.elaborate.naming import FLOAT_FUNCTIONS
from linnet.elaborate.operands import (
    FloatOperand,
    IntOperand,
    LabelledOperand,
    Operand,
    ValueOperand,
)
from linnet.ir import Generic, Value
from linnet.syntax import tree
from linnet.types import (
    BOOL,
    AnyDType,
    DType,
    PackVar,
    Shape,
    TensorType,
    Type,
    fresh_dtype_var,
)

# Applied inside index notation too; the others there work on whole values free of indices.
ELEMENTWISE = frozenset((*FLOAT_FUNCTIONS, "cast", "abs", "min", "max", "shl", "shr", "select"))

_DTYPE = Generic("T", "DType", fresh_dtype_var("T", "DType"))
_INTEGER = Generic("T", "Integer", fresh_dtype_var("T", "Integer"), DType.I64)


def call_prelude(ctx: Context, name: str, call: tree.Call, expected: Type | None) -> Operand:
    """A call of prelude function `name`."""
    if name in FLOAT_FUNCTIONS or name == "abs":
        _no_generics(ctx, name, call)
        return _unary(ctx, name, call, expected)
    if name in ("min", "max", "shl", "shr"):
        _no_generics(ctx, name, call)
        return _binary(ctx, name, call, expected)
    if name not in ("cast", "iota", "fill"):
        _no_generics(ctx, name, call)
    handlers: dict[str, Callable[[Context, tree.Call, Type | None], Operand]] = {
        "cast": _cast,
        "select": _select,
        "reshape": _reshape,
        "broadcast_to": _broadcast_to,
        "permute": _permute,
        "concat": _concat,
        "iota": _iota,
        "fill": _fill,
        "cumsum": _cumsum,
    }
    return handlers[name](ctx, call, expected)


def _no_generics(ctx: Context, name: str, call: tree.Call) -> None:
    if call.generics:
        ctx.report("E2111", f"`{name}` takes no generic arguments", call.span)


def _generic(ctx: Context, name: str, generic: Generic, call: tree.Call) -> AnyDType | None:
    resolver = ctx.resolver()
    args = generic_args(resolver, name, (generic,), call.generics, call.span)
    ctx.discharge(resolver.obligations)
    if args is None:
        return None
    (dtype,) = args
    assert not isinstance(dtype, Dim | tuple)
    return dtype


def _args(
    ctx: Context, name: str, params: tuple[str, ...], call: tree.Call
) -> list[tree.Expr] | None:
    found = match_arguments(ctx, name, params, len(params), call)
    return None if found is None else [found[param].value for param in params]


# --- elementwise -------------------------------------------------------------------------------


def _unary(ctx: Context, name: str, call: tree.Call, expected: Type | None) -> Operand:
    args = _args(ctx, name, ("x",), call)
    if args is None:
        return BROKEN
    operand = ctx.expr(args[0], expected)
    typed = common_dtype(ctx, (operand,), (args[0].span,), expected or _float_hint(name))
    if typed is None:
        return BROKEN
    dtype, operands = typed
    if not allows(name, dtype):
        wanted = "float" if name in FLOAT_FUNCTIONS else "numeric"
        ctx.report(
            "E2104",
            f"`{name}` takes {wanted} values, not `{dtype}`",
            args[0].span,
            help="convert it: `cast<f32>(...)`" if wanted == "float" else None,
        )
        return BROKEN
    return elementwise(ctx, name, operands, dtype, call.span)


def _float_hint(name: str) -> Type | None:
    from linnet.types import F64

    return F64 if name in FLOAT_FUNCTIONS else None


def _binary(ctx: Context, name: str, call: tree.Call, expected: Type | None) -> Operand:
    args = _args(ctx, name, ("x", "n") if name.startswith("sh") else ("a", "b"), call)
    if args is None:
        return BROKEN
    left, right = ctx.expr(args[0], expected), ctx.expr(args[1], expected)
    spans = (args[0].span, args[1].span, call.span)
    return binary(ctx, name, left, right, spans, expected)


def _cast(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    dtype = _generic(ctx, "cast", _DTYPE, call)
    args = _args(ctx, "cast", ("x",), call)
    if dtype is None or args is None:
        return BROKEN
    operand = ctx.expr(args[0])
    span = args[0].span
    if isinstance(operand, IntOperand) and dtype.is_numeric:
        value = ctx.literal(operand, dtype, span)
        return BROKEN if value is None else ValueOperand(value)
    if isinstance(operand, FloatOperand) and dtype.is_float:
        value = ctx.literal(operand, dtype, span)
        return BROKEN if value is None else ValueOperand(value)
    value = tensor_of(ctx, operand, span)
    if value is None:
        return BROKEN
    assert isinstance(value.type, TensorType)
    if value.type.dtype == dtype:
        return operand if isinstance(operand, LabelledOperand) else ValueOperand(value)
    result = ctx.emit("cast", (value,), value.type.with_dtype(dtype), call.span)
    if isinstance(operand, LabelledOperand):
        return LabelledOperand(result, operand.labels)
    return ValueOperand(result)


def _select(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    args = _args(ctx, "select", ("cond", "a", "b"), call)
    if args is None:
        return BROKEN
    condition = ctx.expr(args[0], BOOL)
    sides = [ctx.expr(args[1], expected), ctx.expr(args[2], expected)]
    truth = tensor_of(ctx, condition, args[0].span)
    typed = common_dtype(ctx, sides, [args[1].span, args[2].span], expected)
    if truth is None or typed is None:
        return BROKEN
    assert isinstance(truth.type, TensorType)
    if truth.type.dtype is not DType.BOOL:
        ctx.report("E2103", f"the condition must be `bool`, not `{truth.type.dtype}`", args[0].span)
        return BROKEN
    dtype, operands = typed
    return elementwise(ctx, "select", (condition, *operands), dtype, call.span)


# --- shapes ------------------------------------------------------------------------------------


def _tensor(ctx: Context, node: tree.Expr) -> Value | None:
    return tensor_of(ctx, ctx.expr(node), node.span)


def _shape(ctx: Context, node: tree.Expr) -> Shape | None:
    """A shape literal's items; None after reporting."""
    if not isinstance(node, tree.ShapeLit):
        ctx.report("E2101", "expected a shape such as `[A, B]`", node.span)
        return None
    resolver = ctx.resolver()
    shape = resolver.shape(node.items)
    ctx.discharge(resolver.obligations)
    return shape


def _reshape(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    args = _args(ctx, "reshape", ("x", "shape"), call)
    if args is None:
        return BROKEN
    value, shape = _tensor(ctx, args[0]), _shape(ctx, args[1])
    if value is None or shape is None:
        return BROKEN
    assert isinstance(value.type, TensorType)
    target = value.type.with_shape(shape)
    before, after = value.type.element_count, target.element_count
    if not ctx.equal_dims(before, after):
        ctx.report(
            "E2203",
            f"cannot reshape {shape_text(value.type)} to {shape_text(target)}: the element "
            "counts are not known to be equal",
            call.span,
            notes=[f"`{before} == {after}` is not known"],
            help=where_help(ctx.facts, Relation(before, "==", after)),
        )
        return BROKEN
    return ValueOperand(ctx.emit("reshape", (value,), target, call.span))


def _broadcast_to(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    args = _args(ctx, "broadcast_to", ("x", "shape"), call)
    if args is None:
        return BROKEN
    value, shape = _tensor(ctx, args[0]), _shape(ctx, args[1])
    if value is None or shape is None:
        return BROKEN
    assert isinstance(value.type, TensorType)
    joined = broadcast_shape(ctx, (value.type.shape, shape), call.span)
    if joined is None:
        return BROKEN
    if not ctx.same_shape(joined, shape):
        ctx.report(
            "E2202",
            f"{shape_text(value.type)} does not broadcast to "
            f"{shape_text(value.type.with_shape(shape))}",
            call.span,
        )
        return BROKEN
    return ValueOperand(stretch(ctx, value, shape, call.span))


def _plain_rank(ctx: Context, value: Value, what: str, node: tree.Expr) -> Shape | None:
    """The shape of a value whose axes can be counted; reports E2210 for a pack."""
    assert isinstance(value.type, TensorType)
    if any(isinstance(item, PackVar) for item in value.type.shape):
        ctx.report("E2210", f"{what} needs axes that can be counted, without packs", node.span)
        return None
    return value.type.shape


def _constant(ctx: Context, node: tree.Expr) -> int | None:
    resolver = ctx.resolver()
    dim = resolver.dim(node)
    ctx.discharge(resolver.obligations)
    if dim is None:
        return None
    if dim.constant is None:
        ctx.report("E2210", f"an axis must be a known number, not `{dim}`", node.span)
    return dim.constant


def _permute(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    args = _args(ctx, "permute", ("x", "axes"), call)
    if args is None:
        return BROKEN
    value = _tensor(ctx, args[0])
    shape = _plain_rank(ctx, value, "`permute`", args[0]) if value is not None else None
    if not isinstance(args[1], tree.ShapeLit):
        ctx.report("E2210", "expected axes such as `[0, 2, 1]`", args[1].span)
        return BROKEN
    order = [_constant(ctx, item) for item in args[1].items]
    if value is None or shape is None or None in order:
        return BROKEN
    axes = tuple(axis for axis in order if axis is not None)
    if sorted(axes) != list(range(len(shape))):
        ctx.report(
            "E2210",
            f"the axes must be each of 0 to {len(shape) - 1} once",
            args[1].span,
            notes=[f"the tensor is {shape_text(value.type)}"],  # type: ignore[arg-type]
        )
        return BROKEN
    assert isinstance(value.type, TensorType)
    type_ = value.type.with_shape(tuple(shape[axis] for axis in axes))
    return ValueOperand(ctx.emit("permute", (value,), type_, call.span, {"order": axes}))


def _axis(ctx: Context, node: tree.Expr, shape: Shape) -> int | None:
    """An axis number as an item of `shape`; negative ones count from the right."""
    number = _constant(ctx, node)
    if number is None:
        return None
    item = number if number >= 0 else number + len(shape)
    crossed = shape[: item + 1] if number >= 0 else shape[max(item, 0) :]
    if not 0 <= item < len(shape) or any(isinstance(part, PackVar) for part in crossed):
        text = f"[{', '.join(map(str, shape))}]"
        ctx.report("E2210", f"axis {number} is not one that can be counted in {text}", node.span)
        return None
    return item


def _concat(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    parts = [argument for argument in call.args if argument.name is None]
    named = [argument for argument in call.args if argument.name is not None]
    if not parts or len(named) != 1 or named[0].name.text != "axis":  # type: ignore[union-attr]
        ctx.report("E2102", "`concat` takes tensors, then `axis = k`", call.span)
        return BROKEN
    operands = [ctx.expr(part.value) for part in parts]
    spans = [part.span for part in parts]
    typed = common_dtype(ctx, operands, spans)
    if typed is None:
        return BROKEN
    dtype, typed_operands = typed
    values = [operand.value for operand in typed_operands if isinstance(operand, ValueOperand)]
    shapes = [value.type.shape for value in values if isinstance(value.type, TensorType)]
    axis = _axis(ctx, named[0].value, shapes[0])
    if axis is None or len(values) != len(parts):
        return BROKEN
    total: Dim = Dim.of(0)
    for shape, span in zip(shapes, spans, strict=True):
        if len(shape) != len(shapes[0]) or not ctx.same_shape(
            shape[:axis] + shape[axis + 1 :], shapes[0][:axis] + shapes[0][axis + 1 :]
        ):
            shown = " and ".join(f"[{', '.join(map(str, s))}]" for s in (shapes[0], shape))
            ctx.report("E2202", f"{shown} differ in more than the axis they are joined along", span)
            return BROKEN
        item = shape[axis]
        if isinstance(item, PackVar):
            ctx.report("E2210", "a pack cannot be joined along", span)
            return BROKEN
        total = total + item
    result = TensorType((*shapes[0][:axis], total, *shapes[0][axis + 1 :]), dtype)
    return ValueOperand(ctx.emit("concat", tuple(values), result, call.span, {"axis": axis}))


def _iota(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    dtype = _generic(ctx, "iota", _INTEGER, call)
    args = _args(ctx, "iota", ("n",), call)
    if dtype is None or args is None:
        return BROKEN
    resolver = ctx.resolver()
    dim = resolver.shape_dim(args[0])
    ctx.discharge(resolver.obligations)
    if dim is None:
        return BROKEN
    return ValueOperand(ctx.emit("iota", (), TensorType((dim,), dtype), call.span))


def _fill(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    dtype = _generic(ctx, "fill", _DTYPE, call)
    args = _args(ctx, "fill", ("shape", "value"), call)
    if dtype is None or args is None:
        return BROKEN
    shape = _shape(ctx, args[0])
    value = ctx.value(args[1], TensorType((), dtype))
    if shape is None or value is None:
        return BROKEN
    if not shape:
        return ValueOperand(value)
    type_ = TensorType(shape, dtype)
    return ValueOperand(ctx.emit("broadcast", (value,), type_, call.span, {"axes": ()}))


def _cumsum(ctx: Context, call: tree.Call, expected: Type | None) -> Operand:
    args = _args(ctx, "cumsum", ("x", "axis"), call)
    if args is None:
        return BROKEN
    value = _tensor(ctx, args[0])
    if value is None:
        return BROKEN
    assert isinstance(value.type, TensorType)
    axis = _axis(ctx, args[1], value.type.shape)
    if axis is None:
        return BROKEN
    if not allows("cumsum", value.type.dtype):
        ctx.report("E2104", f"`cumsum` does not take `{value.type.dtype}`", args[0].span)
        return BROKEN
    return ValueOperand(ctx.emit("cumsum", (value,), value.type, call.span, {"axis": axis}))
