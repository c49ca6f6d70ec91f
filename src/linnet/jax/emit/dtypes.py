"""How each Linnet dtype is called in generated JAX code; every one of them is JAX's own."""

from __future__ import annotations

from linnet.diagnostics import InternalError
from linnet.types import AnyDType, DType, TensorType, Type

NAMES = {
    DType.BOOL: "bool", DType.I8: "int8", DType.I16: "int16", DType.I32: "int32",
    DType.I64: "int64", DType.U8: "uint8", DType.U16: "uint16", DType.U32: "uint32",
    DType.U64: "uint64", DType.F16: "float16", DType.BF16: "bfloat16", DType.F32: "float32",
    DType.F64: "float64",
}  # fmt: skip

HALF = frozenset({DType.F16, DType.BF16})


def spelled(dtype: DType) -> str:
    """The dtype as generated code writes it."""
    return "bool" if dtype is DType.BOOL else f"jnp.{NAMES[dtype]}"


def concrete(dtype: AnyDType) -> DType:
    if not isinstance(dtype, DType):
        raise InternalError("jax.emit", f"the dtype {dtype} was not bound")
    return dtype


def dtype_of(type_: Type) -> DType:
    return concrete(tensor(type_).dtype)


def tensor(type_: Type) -> TensorType:
    if not isinstance(type_, TensorType):
        raise InternalError("jax.emit", f"a tensor is needed, not {type_}")
    return type_
