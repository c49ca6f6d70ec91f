"""Values between callers, NumPy and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort

from linnet.backends.errors import InputError
from linnet.backends.names import record
from linnet.ir.semantics import NUMPY
from linnet.onnx.emit.dtypes import ONNX
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

Array = np.ndarray[Any, np.dtype[Any]]


class Arrays:
    """How the shared reader makes inputs: NumPy arrays; an absent optional is None."""

    def own(self, value: Any) -> bool:
        return False  # the runtime's values are unwrapped before: they have no NumPy attributes

    def scalar(self, value: int | float | bool, dtype: DType) -> Array:
        return np.array(value, NUMPY[dtype])

    def array(self, value: Any, dtype: DType) -> Array:
        return np.asarray(value, NUMPY[dtype])

    def absent(self, type_: Type, generics: Mapping[Any, GenericArg]) -> None:
        return None

    def present(self, value: Any, nested: bool) -> Any:
        return (value,)


def unwrapped(inputs: Any) -> Any:
    """Inputs with the runtime's own values, also those inside tuples and dicts, as arrays."""
    if isinstance(inputs, ort.OrtValue):
        if not inputs.is_tensor() or inputs.data_type() == "tensor(bfloat16)":
            raise InputError(f"an OrtValue of {inputs.data_type()} cannot be read as a NumPy array:"
                             " give the array it is made from")  # fmt: skip
        return inputs.numpy()
    if isinstance(inputs, Mapping):
        return {name: unwrapped(value) for name, value in inputs.items()}
    return tuple(map(unwrapped, inputs)) if isinstance(inputs, tuple) else inputs


def leaves(type_: Type, value: Any) -> Iterator[Array]:
    """A checked input's tensors, in the order of the model's inputs."""
    match type_:
        case TensorType():
            yield value
        case TupleType(items):
            for inner, item in zip(items, value, strict=True):
                yield from leaves(inner, item)
        case StructType(fields=fields):
            for (_, inner), item in zip(fields, value, strict=True):
                yield from leaves(inner, item)
        case OptionalType(inner):
            if value is not None:
                yield from leaves(inner, value[0])
        case EnumType():
            yield np.array(value, np.int64)
        case _:
            return


def pattern(type_: Type, value: Any) -> Any:
    """Which optionals of an input are there: what a model is written for."""
    match type_:
        case TupleType(items):
            return tuple(pattern(t, v) for t, v in zip(items, value, strict=True))
        case StructType(fields=fields):
            return tuple(pattern(t, v) for (_, t), v in zip(fields, value, strict=True))
        case OptionalType(inner):
            return None if value is None else (pattern(inner, value[0]),)
        case _:
            return ()


_DTYPES = {kind: dtype for dtype, kind in NUMPY.items()}


def dtype_of(array: Array) -> DType:
    return _DTYPES[array.dtype]


def to_ort(array: Array, dtype: DType) -> ort.OrtValue:
    """The array's own memory as ONNX Runtime sees it."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if dtype is DType.BF16:
        bits = array.view(np.uint16)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, ONNX[dtype].value)
    return ort.OrtValue.ortvalue_from_numpy(array)


def assembled(how: Any, arrays: Sequence[Array]) -> Any:
    """A result put together from the model's outputs."""
    match how:
        case ("tensor", int(k)):
            return arrays[k]
        case ("tuple", parts):
            return tuple(assembled(part, arrays) for part in parts)
        case ("struct", name, fields, parts):
            return record(name, tuple(fields))(*(assembled(part, arrays) for part in parts))
        case ("maybe", int(k), part):
            return assembled(part, arrays) if bool(arrays[k]) else None
        case ("case", int(k), cases):
            return cases[int(arrays[k])]
        case ("known", case):
            return case
        case _:
            return None
