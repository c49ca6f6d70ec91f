"""Tuples, structs, optionals and enums: known apart while generating, never objects at run time."""

from __future__ import annotations

from linnet.diagnostics import InternalError
from linnet.ir import Op, Value
from linnet.native.emit.dtypes import dtype_of
from linnet.native.emit.elementwise import constant
from linnet.native.emit.values import Buffer, Entry, Items, Lazy, Maybe, Scalar
from linnet.native.emit.writer import Writer
from linnet.types import DType, EnumType, OptionalType, StructType, TensorType, TupleType, Type


def part(w: Writer, value: Value) -> Entry:
    """A value inside an aggregate: its memory is fixed now, since what it reads may change."""
    found = w.env.get(value)
    return w.buffer(value) if isinstance(found, Lazy) else w.entry(value)


def emit_tuple(w: Writer, op: Op) -> None:
    w.define(op.result, Items(tuple(part(w, v) for v in op.operands)))


def emit_tuple_get(w: Writer, op: Op) -> None:
    whole = w.entry(op.operands[0])
    if not isinstance(whole, Items):
        raise InternalError("native.emit", "a tuple is none", op.span)
    w.define(op.result, whole.items[op.attrs["index"]])


def emit_struct(w: Writer, op: Op) -> None:
    type_ = op.result.type
    assert isinstance(type_, StructType)
    fields = {name: k for k, (name, _) in enumerate(type_.fields)}
    w.define(op.result, Items(tuple(part(w, v) for v in op.operands), fields))


def emit_struct_get(w: Writer, op: Op) -> None:
    whole = w.entry(op.operands[0])
    if not isinstance(whole, Items):
        raise InternalError("native.emit", "a struct is none", op.span)
    w.define(op.result, whole.items[whole.fields[op.attrs["field"]]])


def emit_some(w: Writer, op: Op) -> None:
    w.define(op.result, Maybe("true", part(w, op.operands[0])))


def emit_none(w: Writer, op: Op) -> None:
    type_ = op.result.type
    assert isinstance(type_, OptionalType)
    w.define(op.result, Maybe("false", absent(type_.inner)))


def _zero(dtype: DType) -> int | float | bool:
    if dtype is DType.BOOL:
        return False
    return 0.0 if dtype.is_float else 0


def absent(type_: Type) -> Entry:
    """What stands for a value that is not there; nobody reads it."""
    match type_:
        case TensorType():
            dtype = dtype_of(type_)
            if not type_.shape:
                return constant(_zero(dtype), dtype)
            return Buffer("nullptr", dtype, type_.dims)
        case TupleType(items):
            return Items(tuple(map(absent, items)))
        case StructType(fields=fields):
            names = {name: k for k, (name, _) in enumerate(fields)}
            return Items(tuple(absent(inner) for _, inner in fields), names)
        case OptionalType(inner):
            return Maybe("false", absent(inner))
        case EnumType():
            return constant(0, DType.I32)
        case _:
            raise InternalError("native.emit", f"no value of {type_}")


def emit_enum(w: Writer, op: Op) -> None:
    w.define(op.result, Scalar(f"int32_t{{{op.attrs['case']}}}", DType.I32))
