"""Function bodies: from a checked head and a syntax tree to an IR function."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.elaborate.calls import UNIT
from linnet.elaborate.context import Context
from linnet.elaborate.entities import FunctionEntity, LocalEntity
from linnet.elaborate.expressions import evaluate
from linnet.elaborate.operands import ValueOperand
from linnet.elaborate.resolve import Resolver
from linnet.elaborate.signatures import signature
from linnet.elaborate.statements import run
from linnet.elaborate.world import Signature, SigParam, World
from linnet.ir import NONE_DEFAULT, Function, Grad, Param, Region, Value
from linnet.syntax import tree
from linnet.types import OptionalType, TensorType, TupleType, Type


class Checked:
    """An IR function, the functions it calls, and its locals that are never read."""

    def __init__(self, function: Function, ctx: Context) -> None:
        self.function = function
        self.callees = ctx.callees
        self.unused = ctx.unused


def check_function(world: World, entity: FunctionEntity) -> Checked:
    """Checks and lowers one function; a function with an error comes out `broken`."""
    sig = signature(world, entity)
    errors = world.reporter.errors
    ctx = Context(world, sig, evaluate, run)
    params = tuple(Value(p.type, p.name, p.span) for p in sig.params)
    _bind_params(ctx, entity, params)
    body = _body(ctx, entity.decl.body, sig.result, params)
    grad = _grad(world, ctx, sig, params) if entity.decl.grad is not None else None
    function = Function(
        entity.name,
        entity.decl.kind,
        entity.block.name if entity.block is not None and entity.decl.kind != "op" else None,
        sig.generics,
        tuple(
            Param(p.name, value, _entry_default(world, sig, p))
            for p, value in zip(sig.params, params, strict=True)
        ),
        tuple(clause.relation for clause in sig.where),
        body,
        grad,
        entity.decl.doc,
        entity.decl.span,
        sig.broken or ctx.broken or not body.results or world.reporter.errors > errors,
    )
    return Checked(function, ctx)


def _bind_params(ctx: Context, entity: FunctionEntity, params: Sequence[Value]) -> None:
    for decl, value in zip(entity.decl.params, params, strict=True):
        if decl.name.text != "_":
            # Parameters are part of an interface: not using one is no fault.
            ctx.scope.names[decl.name.text] = LocalEntity(decl.name, ValueOperand(value), False)


def _body(ctx: Context, node: tree.Body, result: Type | None, params: tuple[Value, ...]) -> Region:
    """A function's region; its one result is the unit tuple when nothing is returned."""
    *before, last = node.statements or (None,)
    with ctx.open_region() as region, ctx.inner_scope():
        for statement in before:
            if statement is not None:
                run(ctx, statement)
        if last is not None and not isinstance(last, tree.Return):
            run(ctx, last)
        value = _returned(ctx, node, last, result)
    return Region(params, tuple(region.ops), (value,) if value is not None else ())


def _returned(
    ctx: Context, node: tree.Body, last: tree.Statement | None, result: Type | None
) -> Value | None:
    if result is None:
        if isinstance(last, tree.Return) and last.value is not None:
            ctx.report(
                "E2120", "this function declares no result", last.span,
                help="add `-> type` to its head",
            )  # fmt: skip
            return None
        return ctx.emit("tuple", (), UNIT, node.span)
    if isinstance(last, tree.Return):
        if last.value is not None:
            return ctx.value(last.value, result)
        ctx.report("E2120", f"this function returns `{result}`", last.span)
        return None
    if any(isinstance(statement, tree.Return) for statement in node.statements):
        return None
    end = type(node.span)(node.span.file, max(node.span.end - 1, node.span.start), node.span.end)
    ctx.report("E2120", f"the function must end by returning `{result}`", end)
    return None


def _entry_default(
    world: World, sig: Signature, param: SigParam
) -> int | float | bool | str | None:
    """A default as a Python value, for callers from outside."""
    node = param.default
    if node is None:
        return None
    if isinstance(node, tree.NoneExpr):
        return NONE_DEFAULT
    if isinstance(node, tree.BoolLit):
        return node.value
    with world.reporter:
        number = Resolver(world, sig.entity.module, sig.scope, []).number(node)
    if number is None:
        return None
    return getattr(number, "value", None) if hasattr(number, "value") else number.dim.constant


# --- gradients ---------------------------------------------------------------------------------


def float_tensor_types(types: Sequence[Type]) -> list[Type]:
    """The types among a function's parameters that a `grad` clause answers for."""
    return [type_ for type_ in types if _is_float_tensor(type_)]


def _is_float_tensor(type_: Type) -> bool:
    inner = type_.inner if isinstance(type_, OptionalType) else type_
    return isinstance(inner, TensorType) and bool(inner.shape) and inner.dtype.is_float


def _grad(world: World, ctx: Context, sig: Signature, op_params: Sequence[Value]) -> Grad | None:
    clause = sig.entity.decl.grad
    if clause is None or sig.result is None:
        return None
    wanted = float_tensor_types([param.type for param in sig.params])
    if not wanted:
        ctx.report("E2101", "this op has no float tensor to give a gradient of", clause.span)
        return None
    result: Type = wanted[0] if len(wanted) == 1 else TupleType(tuple(wanted))
    inner = Context(world, sig, evaluate, run)
    params = [Value(value.type, value.name, value.span) for value in op_params]
    _bind_params(inner, sig.entity, params)
    for name in (clause.result, clause.gradient):
        value = Value(sig.result, name.text, name.span)
        params.append(value)
        inner.scope.names[name.text] = LocalEntity(name, ValueOperand(value), False)
    body = _body(inner, clause.body, result, tuple(params))
    ctx.callees.update(inner.callees)
    ctx.unused.extend(inner.unused)
    ctx.broken = ctx.broken or inner.broken or not body.results
    return Grad(tuple(params), body)
