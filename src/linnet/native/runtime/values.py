"""Values between callers and machine code: flat lists of arrays, in the order of leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from linnet.backends.inputs import numpy_dtype
from linnet.backends.names import record
from linnet.dims import Symbol
from linnet.types import (
    DType,
    EnumType,
    GenericArg,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)

Array = np.ndarray[Any, Any]


class NumPyArrays:
    """What the shared input checks make of a value: contiguous NumPy arrays.

    Integers and bools are copies. Code finds elements by them, and looks at each more than once:
    to see that it is in range, and to use it, so that no other thread may change it in between.
    """

    def own(self, value: Any) -> bool:
        return False

    def scalar(self, value: int | float | bool, dtype: DType) -> Array:
        return np.array(value, numpy_dtype(dtype))

    def array(self, value: Any, dtype: DType) -> Array:
        if not dtype.is_float:
            return np.array(value, numpy_dtype(dtype), order="C", copy=True)
        array = np.asarray(value)
        if array.dtype.byteorder not in "=|<" or array.dtype != numpy_dtype(dtype):
            array = array.astype(numpy_dtype(dtype))
        if array.flags.c_contiguous and array.flags.aligned:
            return array
        return np.array(array, order="C", copy=True)

    def absent(self, type_: Type, generics: Mapping[Any, GenericArg]) -> None:
        return None

    def present(self, value: Any, nested: bool) -> tuple[Any, ...]:
        return (value,)


def flattened(type_: Type, value: Any) -> list[Array | None]:
    """A checked input as its leaves; a tensor that is not there has no memory."""
    match type_:
        case TensorType():
            return [value]
        case EnumType():
            return [np.array(value, np.int32)]
        case TupleType(items):
            return [leaf for t, v in zip(items, value, strict=True) for leaf in flattened(t, v)]
        case StructType(fields=fields):
            pairs = zip(fields, value, strict=True)
            return [leaf for (_, t), v in pairs for leaf in flattened(t, v)]
        case OptionalType(inner):
            if value is None:
                return [np.array(False), *_nothing(inner)]
            return [np.array(True), *flattened(inner, value[0])]
        case _:
            raise TypeError(f"no value of {type_}")


def _nothing(type_: Type) -> list[Array | None]:
    match type_:
        case TensorType(dtype=dtype):
            if type_.shape or not isinstance(dtype, DType):
                return [None]
            return [np.zeros((), numpy_dtype(dtype))]
        case TupleType(items):
            return [leaf for item in items for leaf in _nothing(item)]
        case StructType(fields=fields):
            return [leaf for _, inner in fields for leaf in _nothing(inner)]
        case OptionalType(inner):
            return [np.array(False), *_nothing(inner)]
        case _:
            return [np.zeros((), np.int32)]


def results(type_: Type, sizes: Mapping[Symbol, int]) -> list[Array]:
    """Memory for a result's leaves."""
    match type_:
        case TensorType(dtype=dtype):
            assert isinstance(dtype, DType)
            shape = tuple(dim.evaluate(sizes) for dim in type_.dims)
            return [np.empty(shape, numpy_dtype(dtype))]
        case EnumType():
            return [np.zeros((), np.int32)]
        case TupleType(items):
            return [leaf for item in items for leaf in results(item, sizes)]
        case StructType(fields=fields):
            return [leaf for _, inner in fields for leaf in results(inner, sizes)]
        case OptionalType(inner):
            return [np.zeros((), np.bool_), *results(inner, sizes)]
        case _:
            raise TypeError(f"no value of {type_}")


def rebuilt(type_: Type, leaves: Iterator[Array]) -> Any:
    """A result in the caller's terms: arrays, tuples, named tuples for structs, None, a case."""
    match type_:
        case TensorType():
            return next(leaves)
        case EnumType(cases=cases):
            return cases[int(next(leaves))]
        case TupleType(items):
            return tuple(rebuilt(item, leaves) for item in items)
        case StructType(name=name, fields=fields):
            values = [rebuilt(inner, leaves) for _, inner in fields]
            return record(name, tuple(n for n, _ in fields))(*values)
        case OptionalType(inner):
            there = bool(next(leaves))
            held = rebuilt(inner, leaves)
            return held if there else None
        case _:
            raise TypeError(f"no value of {type_}")
