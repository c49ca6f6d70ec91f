"""Tuples and structs, as Python's tuples and named tuples."""

from __future__ import annotations

from linnet.backends.emit.dtypes import rank_of
from linnet.backends.emit.sizes import tuple_text
from linnet.backends.emit.writer import Writer
from linnet.backends.expr import ATOM, Expr, joined
from linnet.diagnostics import InternalError
from linnet.ir import Op, Value
from linnet.types import StructType, Type


def holding(text: str, parts: tuple[Expr, ...]) -> Expr:
    """An aggregate of these parts."""
    alias = frozenset().union(*(p.alias for p in parts))
    return Expr(text, names=joined(parts), alias=alias)


def emit_tuple(w: Writer, op: Op) -> None:
    parts = tuple(w.component(v) for v in op.operands)
    w.define(op.result, holding(tuple_text([p.text for p in parts]), parts), hint="pair")


def emit_tuple_get(w: Writer, op: Op) -> None:
    if op.result.id in w.unpacked:
        w.left[op.operands[0].id] -= 1
        return
    a = w.get(op.operands[0])
    w.define(op.result, _part(op.result, f"{a.at(ATOM)}[{op.attrs['index']}]", a), hint="item")


def emit_struct(w: Writer, op: Op) -> None:
    parts = tuple(w.component(v) for v in op.operands)
    name = w.module.types.struct(struct_type(op.result.type))
    w.define(op.result, holding(f"{name}({', '.join(p.text for p in parts)})", parts))


def emit_struct_get(w: Writer, op: Op) -> None:
    type_ = struct_type(op.operands[0].type)
    a = w.get(op.operands[0])
    text = f"{a.at(ATOM)}.{w.module.types.field(type_, op.attrs['field'])}"
    w.define(op.result, _part(op.result, text, a), hint=op.attrs["field"])


def _part(value: Value, text: str, a: Expr) -> Expr:
    """A part of an aggregate: a tensor of its whole shape, or another aggregate."""
    return Expr(text, rank=rank_of(value.type), names=a.names, alias=a.alias)


def struct_type(type_: Type) -> StructType:
    if not isinstance(type_, StructType):
        raise InternalError("backends.emit", f"{type_} is no struct")
    return type_
