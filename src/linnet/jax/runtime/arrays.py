"""Linnet's dtypes and inputs as JAX has them, and the settings that a call runs under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from linnet.backends.inputs import numpy_dtype
from linnet.jax.emit.dtypes import HALF
from linnet.types import (
    DType,
    EnumType,
    GenericArg,
    OptionalType,
    StructType,
    Subst,
    TensorType,
    TupleType,
    Type,
)


@contextmanager
def settings() -> Iterator[None]:
    """64-bit integers, and matrix products of f32 in f32, for the calls inside alone."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


class JaxArrays:
    """Inputs for compiled functions, which take NumPy's arrays and their own."""

    def own(self, value: Any) -> bool:
        return isinstance(value, jax.Array)

    def scalar(self, value: int | float | bool, dtype: DType) -> Any:
        return np.asarray(value, numpy_dtype(dtype))

    def array(self, value: Any, dtype: DType) -> Any:
        array = np.ascontiguousarray(value).reshape(value.shape)
        return array.astype(numpy_dtype(dtype), copy=False)

    def absent(self, type_: Type, generics: Mapping[Any, GenericArg]) -> Any:
        return _zeros(Subst.of(generics).type(type_))

    def present(self, value: Any, nested: bool) -> Any:
        return np.bool_(True), value


def _zeros(type_: Type) -> Any:
    match type_:
        case TensorType(dtype=DType() as dtype):
            return np.zeros([d.constant or 0 for d in type_.dims], numpy_dtype(dtype))
        case TupleType(items):
            return tuple(map(_zeros, items))
        case StructType(fields=fields):
            return tuple(_zeros(t) for _, t in fields)
        case EnumType():
            return np.int32(0)
        case OptionalType(inner):
            return np.bool_(False), _zeros(inner)
        case _:
            raise TypeError(f"{type_} has no zero")


def zeros_of(type_: TensorType, bits: bool = False) -> jax.Array:
    """A state before anything was written, in memory of its own; with `bits` a 16-bit float as
    the integer with its bits."""
    assert isinstance(type_.dtype, DType)
    dtype = jnp.uint16 if bits and type_.dtype in HALF else numpy_dtype(type_.dtype)
    return jnp.zeros([d.constant or 0 for d in type_.dims], dtype)


__all__ = ["JaxArrays", "settings", "zeros_of"]
