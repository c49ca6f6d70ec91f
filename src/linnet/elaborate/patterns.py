"""Binding names to values: `let`, loop and match patterns."""

from __future__ import annotations

from linnet.elaborate.context import Context
from linnet.elaborate.entities import BrokenEntity, LocalEntity
from linnet.elaborate.naming import check_not_prelude
from linnet.elaborate.operands import (
    BROKEN,
    ErrorOperand,
    NoneOperand,
    Operand,
    SomeOperand,
    ValueOperand,
)
from linnet.syntax import tree
from linnet.types import TupleType


def bind_pattern(ctx: Context, pattern: tree.Pattern, operand: Operand) -> None:
    """Brings a pattern's names into scope; reports E2117 where it cannot match."""
    if isinstance(pattern, tree.NamePattern):
        _bind_name(ctx, pattern.name, operand)
        return
    parts: list[Operand] = [BROKEN] * len(pattern.items)
    if not isinstance(operand, ErrorOperand):
        value = ctx.coerce(operand, None, pattern.span)
        type_ = value.type if value is not None else None
        if value is not None and isinstance(type_, TupleType):
            if len(type_.items) == len(pattern.items):
                parts = [
                    ValueOperand(
                        ctx.emit("tuple_get", (value,), item, pattern.span, {"index": index})
                    )
                    for index, item in enumerate(type_.items)
                ]
            else:
                ctx.report(
                    "E2117",
                    f"the pattern has {len(pattern.items)} parts, the value `{type_}` "
                    f"{len(type_.items)}",
                    pattern.span,
                )
        elif type_ is not None:
            ctx.report("E2117", f"`{type_}` is not a tuple", pattern.span)
    for item, part in zip(pattern.items, parts, strict=True):
        bind_pattern(ctx, item, part)


def _bind_name(ctx: Context, name: tree.Name, operand: Operand) -> None:
    if not check_not_prelude(ctx.world.reporter, name):
        operand = BROKEN
    if isinstance(operand, NoneOperand | SomeOperand):
        made = ctx.coerce(operand, None, name.span)
        operand = BROKEN if made is None else ValueOperand(made)
    if name.text == "_":
        return
    ctx.note_shadowed(name.text)
    if isinstance(operand, ErrorOperand):
        ctx.scope.names[name.text] = BrokenEntity()
        return
    if isinstance(operand, ValueOperand):
        operand.value.give_name(name.text)
    ctx.scope.names[name.text] = LocalEntity(name, operand)
