"""Optionals and enums.

An optional is a pair `(present, value)`; without a value, zeros stand in its place.
"""

from __future__ import annotations

from linnet.backends.emit.sizes import tuple_text
from linnet.backends.expr import Expr
from linnet.diagnostics import InternalError
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.types import EnumType, OptionalType, StructType, TensorType, TupleType, Type


def zeros(w: Writer, type_: Type) -> tuple[str, frozenset[str]]:
    """What an absent optional holds in its value's place, and the variables in it."""
    match type_:
        case TensorType():
            made = w.filled(Expr("0", host=True, const=0), type_)
            return made.text, made.names
        case TupleType(items):
            parts, names = _each(w, items)
            return tuple_text(parts), names
        case StructType(fields=fields):
            parts, names = _each(w, tuple(inner for _, inner in fields))
            return f"{w.module.types.struct(type_)}({', '.join(parts)})", names
        case EnumType():
            return "jnp.int32(0)", frozenset()
        case OptionalType(inner):
            text, names = zeros(w, inner)
            return f"(False, {text})", names
        case _:
            raise InternalError("jax.emit", f"{type_} has no zero", w.function.span)


def _each(w: Writer, types: tuple[Type, ...]) -> tuple[list[str], frozenset[str]]:
    parts = [zeros(w, each) for each in types]
    return [text for text, _ in parts], frozenset().union(*(names for _, names in parts))


def emit_some(w: Writer, op: Op) -> None:
    a = w.component(op.operands[0])
    w.define(op.result, Expr(f"(True, {a.text})", names=a.names))


def emit_none(w: Writer, op: Op) -> None:
    text, names = zeros(w, op.result.type)
    w.define(op.result, Expr(text, names=names))


def emit_enum(w: Writer, op: Op) -> None:
    type_ = op.result.type
    if not isinstance(type_, EnumType):
        raise InternalError("jax.emit", f"{type_} is no enum", op.span)
    case = w.module.types.case(type_, op.attrs["case"])
    w.define(op.result, Expr(f"jnp.int32({case})"))
