"""Values taken apart into tensors, as they leave branches and loops, and put together again."""

from __future__ import annotations

from typing import Any

from linnet.diagnostics import InternalError
from linnet.onnx.emit.dtypes import dtype_of
from linnet.onnx.emit.held import Case, Held, Maybe
from linnet.onnx.emit.trace import case_number
from linnet.types import (
    DType,
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)


def leaves(type_: Type) -> list[TensorType]:
    """The tensors that a value of the type is made of."""
    match type_:
        case TensorType():
            return [type_]
        case TupleType(items):
            return [leaf for item in items for leaf in leaves(item)]
        case StructType(fields=fields):
            return [leaf for _, item in fields for leaf in leaves(item)]
        case OptionalType(inner):
            return [TensorType((), DType.BOOL), *leaves(inner)]
        case EnumType():
            return [TensorType((), DType.I64)]
        case _:
            raise InternalError("onnx.emit", f"no value has the type {type_}")


def flat(type_: Type, value: Any) -> list[Held]:
    """The tensors of a value, in the order of `leaves`."""
    match type_:
        case TensorType():
            return [value]
        case TupleType(items):
            return [h for i, v in zip(items, value, strict=True) for h in flat(i, v)]
        case StructType(fields=fields):
            return [h for (_, i), v in zip(fields, value, strict=True) for h in flat(i, v)]
        case OptionalType(inner):
            if isinstance(value, Maybe):
                return [value.flag, *flat(inner, value.value)]
            flag = Held.number(value is not None, DType.BOOL)
            if value is None:
                return [flag, *(_zeros(leaf) for leaf in leaves(inner))]
            return [flag, *flat(inner, value.value)]
        case _:
            return [case_number(value)]


def _zeros(type_: TensorType) -> Held:
    dtype = dtype_of(type_)
    zero = False if dtype is DType.BOOL else 0.0 if dtype.is_float else 0
    return Held.number(zero, dtype, type_.dims)


def rebuilt(type_: Type, parts: list[Held]) -> Any:
    """The value whose tensors come first in `parts`, which loses them."""
    match type_:
        case TensorType():
            return parts.pop(0)
        case TupleType(items):
            return tuple(rebuilt(item, parts) for item in items)
        case StructType(fields=fields):
            return tuple(rebuilt(item, parts) for _, item in fields)
        case OptionalType(inner):
            flag = parts.pop(0)
            return Maybe(flag, rebuilt(inner, parts))
        case _:
            return Case(parts.pop(0))
