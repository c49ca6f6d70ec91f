"""Calls of functions, ops, methods and struct constructors."""

from __future__ import annotations

from linnet.diagnostics import Span
from linnet.dims import Dim, Relation, Symbol
from linnet.elaborate.advice import describe_facts, where_help
from linnet.elaborate.arguments import match_arguments
from linnet.elaborate.binding import struct_type
from linnet.elaborate.blocks import block_generics
from linnet.elaborate.call_args import (
    argument_values,
    check_arguments,
    infer_generics,
)
from linnet.elaborate.context import BROKEN, Context, value_type
from linnet.elaborate.entities import (
    SELF,
    BlockEntity,
    BrokenEntity,
    Entity,
    FunctionEntity,
    PreludeEntity,
    StructEntity,
    declared_span,
    kind_of,
)
from linnet.elaborate.generic_args import generic_args
from linnet.elaborate.generics import struct_info
from linnet.elaborate.infer import Inference
from linnet.elaborate.mentions import index_free
from linnet.elaborate.names import child, find_entity
from linnet.elaborate.operands import (
    Operand,
    SubOperand,
    ValueOperand,
)
from linnet.elaborate.prelude import ELEMENTWISE, call_prelude
from linnet.elaborate.reporter import did_you_mean
from linnet.elaborate.signatures import signature
from linnet.elaborate.world import Signature, SigParam, is_public
from linnet.ir import Generic, Ref, Value
from linnet.syntax import tree
from linnet.types import (
    ErrorType,
    GenericArg,
    PackVar,
    StructType,
    TensorType,
    TupleType,
    Type,
)

# What a function without a result gives.
UNIT = TupleType(())


def call(ctx: Context, node: tree.Call, expected: Type | None) -> Operand:
    """Any call."""
    if isinstance(node.callee, tree.Field):
        found = find_entity(ctx, node.callee)
        if found is None:
            return _method(ctx, node, node.callee)
    elif isinstance(node.callee, tree.NameExpr):
        found = ctx.world.find(ctx.scope, node.callee.name)
        if found is None:
            return _skip_arguments(ctx, node)
    else:
        ctx.report("E2106", "only a named function can be called", node.callee.span)
        return BROKEN
    return _call_entity(ctx, node, found, expected)


def _call_entity(ctx: Context, node: tree.Call, entity: Entity, expected: Type | None) -> Operand:
    match entity:
        case PreludeEntity(name):
            if ctx.notation and name not in ELEMENTWISE:
                return _index_free(ctx, node, expected)
            return call_prelude(ctx, name, node, expected)
        case FunctionEntity() | StructEntity() if ctx.notation:
            return _index_free(ctx, node, expected)
        case FunctionEntity(block=None):
            return _function(ctx, node, entity, None, ())
        case FunctionEntity(block=BlockEntity() as block):
            if block is not ctx.signature.entity.block:
                ctx.report("E1208", "a method of another block needs a receiver", node.span)
                return BROKEN
            caller = ctx.signature.entity.decl
            if caller.kind == "op" and entity.decl.kind != "op":
                name = entity.decl.name.text
                ctx.report("E1208", f"an op is pure and cannot call the method `{name}`", node.span)
                return BROKEN
            own = tuple(map(_as_arg, block_generics(ctx.world, block)))
            return _function(ctx, node, entity, SELF, own)
        case StructEntity():
            return _construct(ctx, node, entity)
        case BrokenEntity():
            return _skip_arguments(ctx, node)
        case _:
            ctx.report(
                "E2106",
                f"this is {kind_of(entity)}, not a function",
                node.callee.span,
                related=[(declared_span(entity), "declared here")],
            )
            return BROKEN


def _index_free(ctx: Context, node: tree.Call, expected: Type | None) -> Operand:
    """A call inside index notation of something that does not work element by element."""
    if not index_free(ctx, node):
        return BROKEN
    with ctx.mode(notation=False):
        operand = call(ctx, node, expected)
    return scalar_only(ctx, operand, node.span)


def scalar_only(ctx: Context, operand: Operand, span: Span) -> Operand:
    """What an expression free of indices may be inside index notation: a scalar."""
    type_ = value_type(operand)
    if not isinstance(type_, TensorType) or type_.is_scalar:
        return operand
    ctx.report(
        "E3104",
        f"a tensor (`{type_}`) stands in index notation without indices",
        span,
        help="give every axis an index, as in `x[i, j]`",
    )
    return BROKEN


def _skip_arguments(ctx: Context, node: tree.Call) -> Operand:
    """Checks the arguments of a call that leads nowhere, for their own problems."""
    for argument in node.args:
        if not isinstance(argument.value, tree.ShapeLit):
            ctx.expr(argument.value)
    return BROKEN


def _as_arg(generic: Generic) -> GenericArg:
    match generic.var:
        case Symbol():
            return Dim.of(generic.var)
        case PackVar():
            return (generic.var,)
        case _:
            return generic.var


def _method(ctx: Context, node: tree.Call, callee: tree.Field) -> Operand:
    """`child.method(...)`, or a field that is no function."""
    with ctx.mode(notation=False):
        base = ctx.expr(callee.base)
    if isinstance(base, SubOperand):
        block = child(ctx, base, callee.base.span)
        if block is None:
            return BROKEN
        entity = block.inner.names.get(callee.name.text)
        if isinstance(entity, FunctionEntity) and entity.block is block:
            if not is_public(entity) and entity.module != ctx.module:
                ctx.report(
                    "E1203",
                    f"method `{callee.name.text}` of `{block.decl.name.text}` is private",
                    callee.name.span,
                    related=[(declared_span(entity), "declared here without `pub`")],
                )
            if ctx.notation:
                if not index_free(ctx, node):
                    return BROKEN
                with ctx.mode(notation=False):
                    result = _function(ctx, node, entity, base.ref, base.args)
                return scalar_only(ctx, result, node.span)
            return _function(ctx, node, entity, base.ref, base.args)
        methods = [
            name
            for name, item in block.inner.names.items()
            if isinstance(item, FunctionEntity) and item.block is block
        ]
        ctx.report(
            "E2107",
            f"block `{block.decl.name.text}` has no method `{callee.name.text}`",
            callee.name.span,
            help=did_you_mean(callee.name.text, methods),
        )
        return _skip_arguments(ctx, node)
    if isinstance(base, ValueOperand):
        ctx.report("E2106", f"`{base.value.type}` has no methods", callee.span)
    return _skip_arguments(ctx, node)


def _function(
    ctx: Context,
    node: tree.Call,
    entity: FunctionEntity,
    receiver: Ref | None,
    block_args: tuple[GenericArg, ...],
) -> Operand:
    sig = signature(ctx.world, entity)
    name = entity.decl.name.text
    ctx.callees.setdefault(entity.name, node.span)
    required = sum(param.default is None for param in sig.params)
    names = [param.name for param in sig.params]
    found = match_arguments(ctx, name, names, required, node)
    if found is None or sig.broken:
        return _skip_arguments(ctx, node) if found is not None else BROKEN
    inference = Inference(sig.generics, ctx.facts)
    for generic, arg in zip(sig.generics, block_args, strict=False):
        inference.bound[generic.var] = arg
    if node.generics is not None and not _explicit(ctx, node, name, sig, inference):
        return BROKEN
    given = check_arguments(ctx, sig.params, found, inference)
    if given is None or not infer_generics(ctx, node, name, given, inference):
        return BROKEN
    operands = argument_values(ctx, sig, given, inference)
    if operands is None or not _prove_where(ctx, node, name, sig, inference):
        return BROKEN
    subst = inference.subst()
    result = subst.type(sig.result) if sig.result is not None else UNIT
    if isinstance(result, ErrorType):
        return BROKEN
    if entity.decl.kind == "op":
        # An op is pure: what its block gives it are generics alone.
        receiver = None
    attrs = {
        "callee": entity.name,
        "generics": tuple(inference.bound[generic.var] for generic in sig.generics),
        "receiver": receiver,
    }
    return ValueOperand(ctx.emit("call", operands, result, node.span, attrs))


def _explicit(
    ctx: Context, node: tree.Call, name: str, sig: Signature, inference: Inference
) -> bool:
    resolver = ctx.resolver()
    args = generic_args(resolver, name, sig.own_generics, node.generics, node.span)
    ctx.discharge(resolver.obligations)
    if args is None:
        return False
    for generic, arg in zip(sig.own_generics, args, strict=True):
        inference.bound[generic.var] = arg
    return True


def _prove_where(
    ctx: Context, node: tree.Call, name: str, sig: Signature, inference: Inference
) -> bool:
    subst = inference.subst()
    proved = True
    for clause in sig.where:
        needed: Relation = subst.relation(clause.relation)
        if ctx.facts.proves(needed):
            continue
        proved = False
        ctx.report(
            "E2206",
            f"`{name}` needs `{needed}`, which is not known here",
            node.span,
            related=[(clause.span, "required here")],
            notes=describe_facts(ctx.facts),
            help=where_help(ctx.facts, needed),
        )
    return proved


def _construct(ctx: Context, node: tree.Call, entity: StructEntity) -> Operand:
    """`Name(field = value, ...)`."""
    name = entity.decl.name.text
    info = struct_info(ctx.resolver(), entity)
    if info is None:
        return BROKEN
    params = tuple(
        SigParam(field, type_, None, entity.decl.name.span) for field, type_ in info.fields
    )
    for argument in node.args:
        if argument.name is None:
            ctx.report(
                "E2102",
                f"every field of `{name}` must be named",
                argument.span,
                help=f"write `{name}({', '.join(f'{p.name} = ...' for p in params)})`",
            )
            return BROKEN
    found = match_arguments(ctx, name, [p.name for p in params], len(params), node)
    if found is None or info.broken:
        return BROKEN
    inference = Inference(info.generics, ctx.facts)
    if node.generics is not None:
        resolver = ctx.resolver()
        args = generic_args(resolver, name, info.generics, node.generics, node.span)
        ctx.discharge(resolver.obligations)
        if args is None:
            return BROKEN
        inference.bound.update(zip((g.var for g in info.generics), args, strict=True))
    given = check_arguments(ctx, params, found, inference)
    if given is None or not infer_generics(ctx, node, name, given, inference):
        return BROKEN
    bound = tuple(inference.bound[generic.var] for generic in info.generics)
    type_: StructType = struct_type(entity, info.generics, info.fields, bound)
    values: list[Value] = []
    for item, (_, field_type) in zip(given, type_.fields, strict=True):
        value = ctx.coerce(item.operand, field_type, item.span)
        if value is None:
            return BROKEN
        values.append(value)
    return ValueOperand(ctx.emit("struct", tuple(values), type_, node.span))
