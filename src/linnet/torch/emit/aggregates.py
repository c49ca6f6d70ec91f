"""Tuples, structs, optionals and enums."""

from __future__ import annotations

from linnet.backends.expr import ATOM, Expr, joined
from linnet.diagnostics import InternalError
from linnet.ir import Op, Value
from linnet.torch.emit.writer import Writer
from linnet.types import EnumType, OptionalType, StructType, TensorType, Type


def whole_rank(type_: Type) -> int:
    return len(type_.shape) if isinstance(type_, TensorType) else 0


def held(value: Value, text: str, prec: int, names: frozenset[str], alias: frozenset[str]) -> Expr:
    """A part of an aggregate: a tensor of its whole shape, or another aggregate."""
    return Expr(text, prec, rank=whole_rank(value.type), names=names, alias=alias)


def emit_tuple(w: Writer, op: Op) -> None:
    parts = tuple(w.component(v) for v in op.operands)
    inner = ", ".join(p.text for p in parts)
    text = f"({inner},)" if len(parts) == 1 else f"({inner})"
    w.define(op.result, _holding(text, parts), hint="pair")


def _holding(text: str, parts: tuple[Expr, ...]) -> Expr:
    alias = frozenset().union(*(p.alias for p in parts))
    return Expr(text, names=joined(parts), alias=alias)


def emit_tuple_get(w: Writer, op: Op) -> None:
    if op.result.id in w.unpacked:
        w.left[op.operands[0].id] -= 1
        return
    a = w.get(op.operands[0])
    text = f"{a.at(ATOM)}[{op.attrs['index']}]"
    w.define(op.result, held(op.result, text, ATOM, a.names, a.alias), hint="item")


def emit_struct(w: Writer, op: Op) -> None:
    type_ = op.result.type
    if not isinstance(type_, StructType):
        raise InternalError("torch.emit", f"{type_} is no struct", op.span)
    parts = tuple(w.component(v) for v in op.operands)
    name = w.module.struct(type_)
    w.define(op.result, _holding(f"{name}({', '.join(p.text for p in parts)})", parts))


def emit_struct_get(w: Writer, op: Op) -> None:
    type_ = op.operands[0].type
    if not isinstance(type_, StructType):
        raise InternalError("torch.emit", f"{type_} is no struct", op.span)
    a = w.get(op.operands[0])
    text = f"{a.at(ATOM)}.{w.module.struct_field(type_, op.attrs['field'])}"
    w.define(op.result, held(op.result, text, ATOM, a.names, a.alias), hint=op.attrs["field"])


def is_nested(type_: Type) -> bool:
    """Whether an optional holds an optional, which takes a tuple around the inner one."""
    return isinstance(type_, OptionalType) and isinstance(type_.inner, OptionalType)


def emit_some(w: Writer, op: Op) -> None:
    a = w.component(op.operands[0])
    if is_nested(op.result.type):
        a = _holding(f"({a.text},)", (a,))
    w.define(op.result, a)


def emit_none(w: Writer, op: Op) -> None:
    w.hold(op.result, Expr("None"))


def emit_enum(w: Writer, op: Op) -> None:
    type_ = op.result.type
    if not isinstance(type_, EnumType):
        raise InternalError("torch.emit", f"{type_} is no enum", op.span)
    w.hold(op.result, Expr(w.module.enum_case(type_, op.attrs["case"]), host=True))
