"""Tuples, structs, optionals and enums.

An optional is a pair `(present, value)`; without a value, zeros stand in its place.
"""

from __future__ import annotations

from linnet.backends.expr import ATOM, Expr, joined
from linnet.diagnostics import InternalError
from linnet.ir import Op, Value
from linnet.jax.emit.writer import Writer
from linnet.types import EnumType, OptionalType, StructType, TensorType, Type


def whole_rank(type_: Type) -> int:
    return len(type_.shape) if isinstance(type_, TensorType) else 0


def held(value: Value, text: str, names: frozenset[str]) -> Expr:
    """A part of an aggregate: an array of its whole shape, or another aggregate."""
    return Expr(text, ATOM, rank=whole_rank(value.type), names=names)


def emit_tuple(w: Writer, op: Op) -> None:
    parts = tuple(w.component(v) for v in op.operands)
    inner = ", ".join(p.text for p in parts)
    text = f"({inner},)" if len(parts) == 1 else f"({inner})"
    w.define(op.result, Expr(text, names=joined(parts)), hint="pair")


def emit_tuple_get(w: Writer, op: Op) -> None:
    if op.result.id in w.unpacked:
        w.left[op.operands[0].id] -= 1
        return
    a = w.get(op.operands[0])
    text = f"{a.at(ATOM)}[{op.attrs['index']}]"
    w.define(op.result, held(op.result, text, a.names), hint="item")


def emit_struct(w: Writer, op: Op) -> None:
    type_ = op.result.type
    if not isinstance(type_, StructType):
        raise InternalError("jax.emit", f"{type_} is no struct", op.span)
    parts = tuple(w.component(v) for v in op.operands)
    name = w.module.struct(type_)
    made = Expr(f"{name}({', '.join(p.text for p in parts)})", names=joined(parts))
    w.define(op.result, made)


def emit_struct_get(w: Writer, op: Op) -> None:
    type_ = op.operands[0].type
    if not isinstance(type_, StructType):
        raise InternalError("jax.emit", f"{type_} is no struct", op.span)
    a = w.get(op.operands[0])
    text = f"{a.at(ATOM)}.{w.module.struct_field(type_, op.attrs['field'])}"
    w.define(op.result, held(op.result, text, a.names), hint=op.attrs["field"])


def emit_some(w: Writer, op: Op) -> None:
    a = w.component(op.operands[0])
    w.define(op.result, Expr(f"(True, {a.text})", names=a.names))


def emit_none(w: Writer, op: Op) -> None:
    type_ = op.result.type
    if not isinstance(type_, OptionalType):
        raise InternalError("jax.emit", f"{type_} is no optional", op.span)
    text, names = w.zeros(type_)
    w.define(op.result, Expr(text, names=names))


def emit_enum(w: Writer, op: Op) -> None:
    type_ = op.result.type
    if not isinstance(type_, EnumType):
        raise InternalError("jax.emit", f"{type_} is no enum", op.span)
    w.define(op.result, Expr(f"jnp.int32({w.module.enum_case(type_, op.attrs['case'])})"))
