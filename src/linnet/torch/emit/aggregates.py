"""Optionals and enums: an optional is None or its value."""

from __future__ import annotations

from linnet.backends.emit.aggregates import holding
from linnet.backends.expr import Expr
from linnet.diagnostics import InternalError
from linnet.ir import Op
from linnet.torch.emit.writer import Writer
from linnet.types import EnumType, OptionalType, Type


def is_nested(type_: Type) -> bool:
    """Whether an optional holds an optional, which takes a tuple around the inner one."""
    return isinstance(type_, OptionalType) and isinstance(type_.inner, OptionalType)


def emit_some(w: Writer, op: Op) -> None:
    a = w.component(op.operands[0])
    if is_nested(op.result.type):
        a = holding(f"({a.text},)", (a,))
    w.define(op.result, a)


def emit_none(w: Writer, op: Op) -> None:
    w.hold(op.result, Expr("None"))


def emit_enum(w: Writer, op: Op) -> None:
    type_ = op.result.type
    if not isinstance(type_, EnumType):
        raise InternalError("torch.emit", f"{type_} is no enum", op.span)
    w.hold(op.result, Expr(w.module.types.case(type_, op.attrs["case"]), host=True))
