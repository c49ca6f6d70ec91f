"""Statements: bindings, assignments, loops, returns."""

from __future__ import annotations

from typing import assert_never

from linnet.diagnostics import Span
from linnet.elaborate.context import BROKEN, Context
from linnet.elaborate.entities import (
    SELF,
    BrokenEntity,
    LocalEntity,
    MemberEntity,
    VarEntity,
    declared_span,
    kind_of,
)
from linnet.elaborate.loops import runtime_for, static_for, while_loop
from linnet.elaborate.naming import check_not_prelude
from linnet.elaborate.notation import definition
from linnet.elaborate.operands import (
    ValueOperand,
)
from linnet.elaborate.patterns import bind_pattern
from linnet.elaborate.reporter import did_you_mean
from linnet.ir import Value
from linnet.syntax import tree
from linnet.types import Type


def run(ctx: Context, node: tree.Statement) -> None:
    match node:
        case tree.Let():
            _let(ctx, node)
        case tree.LetIndexed():
            _let_indexed(ctx, node)
        case tree.Var():
            _var(ctx, node)
        case tree.Assign():
            _assign(ctx, node)
        case tree.StaticFor():
            static_for(ctx, node)
        case tree.For():
            runtime_for(ctx, node)
        case tree.While():
            while_loop(ctx, node)
        case tree.Return():
            ctx.report(
                "E2120", "`return` stands only at the end of a function", node.span,
                help="compute the value with `if` or carry it in a `var`",
            )  # fmt: skip
        case tree.Yield():
            ctx.report("E2120", "`yield` ends the body of `let ... = for ...` only", node.span)
        case _:
            assert_never(node)


# --- bindings ----------------------------------------------------------------------------------


def _let(ctx: Context, node: tree.Let) -> None:
    if isinstance(node.value, tree.For):
        stacked = runtime_for(ctx, node.value, yields=True)
        bind_pattern(ctx, node.pattern, stacked)
        return
    type_ = ctx.type_of(node.type) if node.type is not None else None
    operand = ctx.expr(node.value, type_)
    if type_ is not None:
        value = ctx.coerce(operand, type_, node.value.span)
        operand = BROKEN if value is None else ValueOperand(value)
    bind_pattern(ctx, node.pattern, operand)


def _let_indexed(ctx: Context, node: tree.LetIndexed) -> None:
    value = definition(ctx, node)
    name = node.name
    ctx.note_shadowed(name.text)
    if not check_not_prelude(ctx.world.reporter, name) or value is None:
        ctx.scope.names[name.text] = BrokenEntity()
        return
    if name.text != "_":
        value.give_name(name.text)
        ctx.scope.names[name.text] = LocalEntity(name, ValueOperand(value))


def _var(ctx: Context, node: tree.Var) -> None:
    type_ = ctx.type_of(node.type) if node.type is not None else None
    value = ctx.value(node.value, type_)
    name = node.name
    ctx.note_shadowed(name.text)
    if not check_not_prelude(ctx.world.reporter, name) or value is None:
        ctx.scope.names[name.text] = BrokenEntity()
        return
    value.give_name(name.text)
    ctx.scope.names[name.text] = VarEntity(name, value.type, ValueOperand(value))


def _assign(ctx: Context, node: tree.Assign) -> None:
    name = node.name.text
    entity = ctx.scope.lookup(name)
    match entity:
        case VarEntity():
            value = _assigned(ctx, node, entity.type, entity.name.span)
            entity.current = BROKEN if value is None else ValueOperand(value)
            if value is not None:
                value.give_name(name)
        case MemberEntity(decl=decl) if decl.kind == "state":
            _assign_state(ctx, node, entity)
        case BrokenEntity():
            ctx.expr(node.value)
        case None:
            known = [n for n in ctx.scope.all_names()
                     if isinstance(ctx.scope.lookup(n), VarEntity | MemberEntity)]  # fmt: skip
            ctx.report(
                "E1201", f"unknown name `{name}`", node.name.span,
                help=did_you_mean(name, known) or f"declare it first: `var {name} = ...`",
            )  # fmt: skip
            ctx.expr(node.value)
        case _:
            ctx.report(
                "E2108",
                f"`{name}` is {kind_of(entity)} and cannot be assigned",
                node.name.span,
                related=[(declared_span(entity), "declared here")],
                help="only a `var` or a `state` can; declare it with `var`",
            )
            ctx.expr(node.value)


def _assigned(ctx: Context, node: tree.Assign, type_: Type, declared: Span) -> Value | None:
    """The assigned value, which must have the type `type_`; reports E2109 when it has another."""
    operand = ctx.expr(node.value, type_)
    if isinstance(operand, ValueOperand) and not ctx.same_type(operand.value.type, type_):
        ctx.report(
            "E2109",
            f"`{node.name.text}` has type `{type_}`, but `{operand.value.type}` is assigned",
            node.value.span,
            related=[(declared, f"declared with `{type_}`")],
            notes=["the type of a `var` or `state` never changes"],
        )
        return None
    return ctx.coerce(operand, type_, node.value.span)


def _assign_state(ctx: Context, node: tree.Assign, entity: MemberEntity) -> None:
    here = ctx.signature.entity
    if here.block is not entity.block or here.decl.kind == "op":
        ctx.report(
            "E2108", f"`{node.name.text}` is not a state of this method's block", node.name.span
        )
        ctx.expr(node.value)
        return
    member = ctx.own_members.get(node.name.text)
    ctx.world.used_members.add(entity.decl)
    if member is None:
        ctx.expr(node.value)
        return
    value = _assigned(ctx, node, member.type, entity.decl.name.span)
    if value is not None:
        value.give_name(member.name)
        attrs = {"ref": SELF.child(member.name)}
        ctx.emit_many("state_write", (value,), (), node.span, attrs)
