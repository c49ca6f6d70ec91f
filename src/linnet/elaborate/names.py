"""Names and fields as expressions: locals, consts, members, children, struct fields, cases."""

from __future__ import annotations

from linnet.diagnostics import Span
from linnet.dims import Dim
from linnet.elaborate.binding import bind
from linnet.elaborate.blocks import block_info
from linnet.elaborate.context import BROKEN, Context
from linnet.elaborate.entities import (
    SELF,
    BlockEntity,
    BrokenEntity,
    ConstEntity,
    DimEntity,
    Entity,
    EnumEntity,
    FunctionEntity,
    IndexEntity,
    LocalEntity,
    MemberEntity,
    ModuleEntity,
    SubEntity,
    VarEntity,
    declared_span,
    kind_of,
)
from linnet.elaborate.operands import (
    FloatOperand,
    IntOperand,
    Operand,
    SubOperand,
    ValueOperand,
)
from linnet.elaborate.reporter import did_you_mean
from linnet.elaborate.resolve import Resolver
from linnet.ir import Member, Ref, Sub
from linnet.syntax import tree
from linnet.types import BOOL, GenericArg, OptionalType, StructType, Type


def find_entity(ctx: Context, node: tree.Expr) -> Entity | None:
    """What a name or `module.name` stands for; None (silently) for anything else."""
    if isinstance(node, tree.NameExpr):
        return ctx.scope.lookup(node.name.text)
    if isinstance(node, tree.Field):
        base = find_entity(ctx, node.base)
        if isinstance(base, ModuleEntity):
            found = ctx.world.member_of_module(base.id, node.name, ctx.module)
            return found if found is not None else BrokenEntity()
        if isinstance(base, BrokenEntity):
            return base
    return None


def name(ctx: Context, node: tree.NameExpr) -> Operand:
    entity = ctx.world.find(ctx.scope, node.name)
    return BROKEN if entity is None else evaluate_entity(ctx, entity, node.span)


def evaluate_entity(ctx: Context, entity: Entity, span: Span) -> Operand:
    """The entity as an operand; reports E1208 when it is no value."""
    match entity:
        case BrokenEntity():
            return BROKEN
        case LocalEntity(operand=operand) | VarEntity(current=operand):
            return operand
        case DimEntity(symbol):
            return IntOperand(Dim.of(symbol))
        case ConstEntity():
            return _const(ctx, entity, span)
        case MemberEntity():
            return _own_member(ctx, entity, span)
        case SubEntity():
            return _own_sub(ctx, entity, span)
        case IndexEntity(label):
            text = label.name.text
            ctx.report(
                "E3104",
                f"the index `{text}` is not a value",
                span,
                help=f"a position as a number is `iota(N)[{text}]`",
            )
            return BROKEN
        case FunctionEntity():
            ctx.report("E1208", "a function is not a value: call it", span)
            return BROKEN
        case _:
            ctx.report(
                "E1208",
                f"{kind_of(entity)} is not a value",
                span,
                related=[(declared_span(entity), "declared here")],
            )
            return BROKEN


def _const(ctx: Context, entity: ConstEntity, span: Span) -> Operand:
    value, type_ = Resolver(ctx.world, entity.module, entity.scope, []).const(entity)
    if value is None:
        return BROKEN
    if isinstance(value, bool):
        return ValueOperand(ctx.emit("const", (), BOOL, span, {"value": value}))
    if type_ is None:
        return value
    made = ctx.coerce(value, type_, span)
    return BROKEN if made is None else ValueOperand(made)


# --- the block's own members -------------------------------------------------------------------


def _is_own(ctx: Context, entity: MemberEntity | SubEntity, span: Span) -> bool:
    here = ctx.signature.entity
    name_ = entity.decl.name.text
    if here.block is not entity.block:
        ctx.report("E1208", f"`{name_}` belongs to another block", span)
        return False
    if here.decl.kind == "op":
        ctx.report("E1208", f"an op is pure and cannot use the block's `{name_}`", span)
        return False
    ctx.world.used_members.add(entity.decl)
    return True


def _own_member(ctx: Context, entity: MemberEntity, span: Span) -> Operand:
    if not _is_own(ctx, entity, span):
        return BROKEN
    member = block_info(ctx.world, entity.block).block.members.get(entity.decl.name.text)
    return BROKEN if member is None else _read(ctx, member, member.type, SELF, span)


def _read(ctx: Context, member: Member, type_: Type, block: Ref, span: Span) -> Operand:
    kind = "state_read" if member.kind == "state" else "param"
    if member.optional:
        type_ = OptionalType(type_)
    attrs = {"ref": block.child(member.name)}
    return ValueOperand(ctx.emit(kind, (), type_, span, attrs, name=member.name))


def _own_sub(ctx: Context, entity: SubEntity, span: Span) -> Operand:
    if not _is_own(ctx, entity, span):
        return BROKEN
    sub = block_info(ctx.world, entity.block).block.subs.get(entity.decl.name.text)
    return BROKEN if sub is None else _sub_operand(sub, SELF, sub.args)


def _sub_operand(sub: Sub, block: Ref, args: tuple[GenericArg, ...]) -> SubOperand:
    return SubOperand(block.child(sub.name), sub.block, args, sub.count, sub.optional)


# --- fields ------------------------------------------------------------------------------------


def child(ctx: Context, operand: SubOperand, span: Span) -> BlockEntity | None:
    """The block of a child that surely exists; reports arrays and optional ones."""
    if operand.count is not None:
        ctx.report(
            "E2107",
            "an array of blocks has no members of its own",
            span,
            help="go through it: `static for layer in layers { ... }`",
        )
        return None
    if operand.optional:
        ctx.report(
            "E2101",
            "this child block may be missing",
            span,
            help="match it: `match child { some(c) => ..., none => ... }`",
        )
        return None
    return ctx.world.block_names[operand.block]


def field(ctx: Context, node: tree.Field) -> Operand:
    """`base.name` where it is a value or a child block."""
    entity = find_entity(ctx, node)
    if entity is not None:
        return evaluate_entity(ctx, entity, node.span)
    base_entity = find_entity(ctx, node.base)
    if isinstance(base_entity, EnumEntity):
        return _case(ctx, base_entity, node)
    base = ctx.expr(node.base)
    match base:
        case SubOperand():
            return _child_field(ctx, base, node)
        case ValueOperand(value):
            if isinstance(value.type, StructType):
                return _struct_field(ctx, base, value.type, node)
            ctx.report("E2107", f"`{value.type}` has no field `{node.name.text}`", node.name.span)
        case IntOperand() | FloatOperand():
            ctx.report("E2107", f"a number has no field `{node.name.text}`", node.name.span)
        case _:
            pass
    return BROKEN


def _case(ctx: Context, entity: EnumEntity, node: tree.Field) -> Operand:
    cases = entity.type.cases
    if node.name.text not in cases:
        ctx.report(
            "E2107",
            f"enum `{entity.type.name}` has no case `{node.name.text}`",
            node.name.span,
            help=did_you_mean(node.name.text, cases),
        )
        return BROKEN
    attrs = {"case": cases.index(node.name.text)}
    return ValueOperand(ctx.emit("enum", (), entity.type, node.span, attrs))


def _struct_field(ctx: Context, base: ValueOperand, type_: StructType, node: tree.Field) -> Operand:
    found = type_.field(node.name.text)
    if found is None:
        ctx.report(
            "E2107",
            f"struct `{type_.name}` has no field `{node.name.text}`",
            node.name.span,
            help=did_you_mean(node.name.text, [field for field, _ in type_.fields]),
        )
        return BROKEN
    attrs = {"field": node.name.text}
    return ValueOperand(ctx.emit("struct_get", (base.value,), found, node.span, attrs))


def _child_field(ctx: Context, base: SubOperand, node: tree.Field) -> Operand:
    entity = child(ctx, base, node.base.span)
    if entity is None:
        return BROKEN
    info = block_info(ctx.world, entity)
    text = node.name.text
    subst = bind(info.generics, base.args)
    member = info.block.members.get(text)
    if member is not None:
        ctx.world.used_members.update(d for d in entity.decl.members if d.name.text == text)
        return _read(ctx, member, subst.type(member.type), base.ref, node.span)
    sub = info.block.subs.get(text)
    if sub is not None:
        ctx.world.used_members.update(d for d in entity.decl.members if d.name.text == text)
        found = _sub_operand(sub, base.ref, tuple(map(subst.arg, sub.args)))
        count = subst.dim(sub.count) if sub.count is not None else None
        return SubOperand(found.ref, found.block, found.args, count, found.optional)
    if any(decl.name.text == text for decl in entity.decl.members):
        return BROKEN
    known = [*info.block.members, *info.block.subs]
    ctx.report(
        "E2107",
        f"block `{entity.decl.name.text}` has no member `{text}`",
        node.name.span,
        help=did_you_mean(text, known),
    )
    return BROKEN
