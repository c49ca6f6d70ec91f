"""Dtypes in C++: how they lie in memory, and what a register holds."""

from __future__ import annotations

import math

import numpy as np

from linnet.diagnostics import InternalError
from linnet.ir.semantics.elementwise import scalar_of
from linnet.types import DType, EnumType, TensorType, Type

STORED: dict[DType, str] = {
    DType.BOOL: "boolean", DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t",
    DType.I64: "int64_t", DType.U8: "uint8_t", DType.U16: "uint16_t", DType.U32: "uint32_t",
    DType.U64: "uint64_t", DType.F16: "f16", DType.BF16: "bf16", DType.F32: "float",
    DType.F64: "double",
}  # fmt: skip

HALF = (DType.F16, DType.BF16)


def stored(dtype: DType) -> str:
    """The type of an element in memory."""
    return STORED[dtype]


def held(dtype: DType) -> str:
    """The type of a value in a register."""
    if dtype in HALF:
        return "float"
    return "bool" if dtype is DType.BOOL else STORED[dtype]


def loaded(dtype: DType, text: str) -> str:
    return f"load({text})" if dtype in HALF or dtype is DType.BOOL else text


def to_store(dtype: DType, text: str) -> str:
    if dtype is DType.BOOL:
        return f"truth({text})"
    return f"stored<{STORED[dtype]}>({text})" if dtype in HALF else text


def dtype_of(type_: Type) -> DType:
    """The dtype of a specialised tensor; an enum's number is an `i32`."""
    if isinstance(type_, EnumType):
        return DType.I32
    if isinstance(type_, TensorType) and isinstance(type_.dtype, DType):
        return type_.dtype
    raise InternalError("native.emit", f"{type_} has no dtype")


def literal(value: int | float | bool, dtype: DType) -> str:
    """C++ source of a number of `dtype`, rounded to it."""
    number = scalar_of(value, dtype)
    if dtype is DType.BOOL:
        return "true" if bool(number) else "false"
    if dtype.is_float:
        return _float_literal(float(number), dtype)
    whole = int(number)
    low, _ = dtype.integer_range
    if whole == low and low < 0 and dtype in (DType.I64, DType.I32):
        return f"std::numeric_limits<{STORED[dtype]}>::min()"
    return f"{STORED[dtype]}{{{whole}{'u' if dtype is DType.U64 else ''}}}"


def _float_literal(value: float, dtype: DType) -> str:
    kind = held(dtype)
    if math.isnan(value):
        return f"std::numeric_limits<{kind}>::quiet_NaN()"
    if math.isinf(value):
        sign = "-" if value < 0 else ""
        return f"{sign}std::numeric_limits<{kind}>::infinity()"
    text = repr(value) if kind == "double" else f"{np.float32(value):.9g}"
    if not any(c in text for c in ".e"):
        text += ".0"
    return text if kind == "double" else f"{text}f"
