"""Expressions: one function that sends each kind to where it is checked."""

from __future__ import annotations

from typing import assert_never

from linnet.dims import Dim, DimError
from linnet.elaborate import access, calls, control, names, notation, slicing
from linnet.elaborate.calls import scalar_only
from linnet.elaborate.context import BROKEN, Context
from linnet.elaborate.elementwise import allows, binary, common_dtype, elementwise
from linnet.elaborate.mentions import index_free
from linnet.elaborate.operands import (
    ErrorOperand,
    FloatOperand,
    IntOperand,
    LabelledOperand,
    NoneOperand,
    Operand,
    SomeOperand,
    ValueOperand,
    is_flexible,
)
from linnet.elaborate.resolve import MAX_TYPE_PARTS, negate, type_parts
from linnet.ir import Value
from linnet.syntax import tree
from linnet.types import BOOL, DType, OptionalType, TensorType, TupleType, Type


def evaluate(ctx: Context, node: tree.Expr, expected: Type | None) -> Operand:
    """Checks an expression and lowers it; reports what is wrong and gives BROKEN then."""
    try:
        operand = _evaluate(ctx, node, expected)
    except DimError as error:
        ctx.world.too_large(error, node.span)
        operand = BROKEN
    ctx.broken = ctx.broken or isinstance(operand, ErrorOperand)
    return operand


def _evaluate(ctx: Context, node: tree.Expr, expected: Type | None) -> Operand:
    match node:
        case tree.NameExpr():
            operand = names.name(ctx, node)
            return scalar_only(ctx, operand, node.span) if ctx.notation else operand
        case tree.IntLit(value):
            return IntOperand(Dim.of(value))
        case tree.FloatLit(number):
            return FloatOperand(number)
        case tree.BoolLit(truth):
            return ValueOperand(ctx.emit("const", (), BOOL, node.span, {"value": truth}))
        case tree.Binary():
            return _binary(ctx, node, expected)
        case tree.Call():
            return calls.call(ctx, node, expected)
        case tree.Subscript():
            return access.access(ctx, node) if ctx.notation else slicing.subscript(ctx, node)
        case tree.Field():
            return _index_free(ctx, node, expected)
        case tree.Unary():
            return _unary(ctx, node, expected)
        case tree.Reduction():
            return notation.reduction(ctx, node)
        case tree.Tuple() | tree.If() | tree.Match() | tree.SomeExpr():
            return _index_free(ctx, node, expected)
        case tree.NoneExpr():
            return NoneOperand()
        case tree.ShapeLit():
            ctx.report("E2101", "a shape can only be given to a function that takes one", node.span)
            return BROKEN
        case tree.PackExpr():
            ctx.report("E3106", "a pack is not a value", node.span)
            return BROKEN
        case tree.StringLit():
            ctx.report("E2101", "a string is not a value a model can use", node.span)
            return BROKEN
        case tree.ErrorExpr():
            return BROKEN
        case _:
            assert_never(node)


def _index_free(
    ctx: Context,
    node: tree.Field | tree.Tuple | tree.If | tree.Match | tree.SomeExpr,
    expected: Type | None,
) -> Operand:
    """Kinds that work on whole values: inside index notation they must be free of indices."""
    if ctx.notation and not isinstance(node, tree.Field) and not index_free(ctx, node):
        return BROKEN
    with ctx.mode(notation=False):
        match node:
            case tree.Field():
                operand = names.field(ctx, node)
            case tree.Tuple():
                operand = _tuple(ctx, node, expected)
            case tree.If():
                operand = control.if_expr(ctx, node, expected)
            case tree.Match():
                operand = control.match_expr(ctx, node, expected)
            case tree.SomeExpr():
                operand = _some(ctx, node, expected)
            case _:
                assert_never(node)
    return scalar_only(ctx, operand, node.span) if ctx.notation else operand


def _tuple(ctx: Context, node: tree.Tuple, expected: Type | None) -> Operand:
    wanted: tuple[Type | None, ...] = (None,) * len(node.items)
    if isinstance(expected, TupleType) and len(expected.items) == len(node.items):
        wanted = expected.items
    values: list[Value] = []
    for item, want in zip(node.items, wanted, strict=True):
        value = ctx.value(item, want)
        if value is not None:
            values.append(value)
    if len(values) != len(node.items):
        return BROKEN
    type_ = TupleType(tuple(value.type for value in values))
    if type_parts(type_) > MAX_TYPE_PARTS:
        ctx.report("E2101", "this tuple's type is too large", node.span)
        return BROKEN
    return ValueOperand(ctx.emit("tuple", tuple(values), type_, node.span))


def _some(ctx: Context, node: tree.SomeExpr, expected: Type | None) -> Operand:
    want = expected.inner if isinstance(expected, OptionalType) else None
    inner = ctx.expr(node.value, want)
    if isinstance(inner, ErrorOperand):
        return BROKEN
    if is_flexible(inner) and want is None:
        return SomeOperand(inner)
    value = ctx.coerce(inner, want, node.value.span)
    if value is None:
        return BROKEN
    return ValueOperand(ctx.emit("some", (value,), OptionalType(value.type), node.span))


def _binary(ctx: Context, node: tree.Binary, expected: Type | None) -> Operand:
    hint = expected if isinstance(expected, TensorType) else None
    if node.op in ("&&", "||", "==", "!=", "<", "<=", ">", ">="):
        hint = None
    left, right = ctx.expr(node.left, hint), ctx.expr(node.right, hint)
    spans = (node.left.span, node.right.span, node.span)
    return binary(ctx, node.op, left, right, spans, hint)


def _unary(ctx: Context, node: tree.Unary, expected: Type | None) -> Operand:
    operand = ctx.expr(node.operand, expected)
    if isinstance(operand, ErrorOperand):
        return BROKEN
    if isinstance(operand, IntOperand | FloatOperand) and node.op in "+-":
        return operand if node.op == "+" else negate(operand)
    typed = common_dtype(ctx, (operand,), (node.operand.span,))
    if typed is None:
        return BROKEN
    dtype, operands = typed
    if node.op == "!":
        return _not(ctx, node, operands[0], dtype is DType.BOOL)
    if not allows("neg", dtype):
        ctx.report("E2104", f"`{node.op}` does not take `{dtype}`", node.span)
        return BROKEN
    return operand if node.op == "+" else elementwise(ctx, "neg", operands, dtype, node.span)


def _not(ctx: Context, node: tree.Unary, operand: Operand, is_bool: bool) -> Operand:
    scalar = isinstance(operand, LabelledOperand) or (
        isinstance(operand, ValueOperand)
        and isinstance(operand.value.type, TensorType)
        and operand.value.type.is_scalar
    )
    if not (scalar and is_bool):
        ctx.report(
            "E2116",
            "`!` works on a scalar `bool` only",
            node.span,
            help="on whole tensors write `x ^ true`" if is_bool else "compare first: `x == 0`",
        )
        return BROKEN
    return elementwise(ctx, "not", (operand,), DType.BOOL, node.span)
