"""Arithmetic on scalars known while generating, rounded as their dtype rounds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from linnet.types import DType

Number = int | float | bool


def wrap(value: int, dtype: DType) -> int:
    """An integer reduced to the range of `dtype`, as two's complement wraps."""
    low, _ = dtype.integer_range
    return (value - low) % (1 << dtype.bits) + low


def rounded(value: float, dtype: DType) -> float:
    """The nearest value that `dtype` holds."""
    if dtype is DType.F64 or not math.isfinite(value):
        return float(value)
    with np.errstate(over="ignore"):
        single = np.float32(value)
        if dtype is DType.F32:
            return float(single)
        if dtype is DType.F16:
            return float(np.float16(value))
    bits = int(single.view(np.uint32))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(np.uint32(bits).view(np.float32))


def convert(value: Number, dtype: DType) -> Number:
    """`cast<dtype>(value)`: a float beyond an integer's range becomes its nearest, NaN 0."""
    if dtype is DType.BOOL:
        return bool(value)
    if dtype.is_float:
        return rounded(float(value), dtype)
    if isinstance(value, float):
        low, high = dtype.integer_range
        if not math.isfinite(value):
            return 0 if math.isnan(value) else (high if value > 0 else low)
        return min(max(math.trunc(value), low), high)
    return wrap(int(value), dtype)


def divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_UNARY: dict[str, Callable[[float], float]] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos,
    "rsqrt": lambda x: 1.0 / math.sqrt(x), "tanh": math.tanh, "erf": math.erf,
    "floor": lambda x: float(math.floor(x)),
}  # fmt: skip

_COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip

_FLOAT: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "rem": math.fmod, "min": min, "max": max,
}  # fmt: skip

_INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": divide, "rem": lambda a, b: a - b * divide(a, b), "min": min, "max": max,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip


def unary(kind: str, value: Number, dtype: DType) -> Number | None:
    """The operation on a known scalar, or None where it is better left to run."""
    if kind == "not":
        return not value
    if kind in ("neg", "abs"):
        result = -value if kind == "neg" else abs(value)
        return rounded(result, dtype) if dtype.is_float else wrap(int(result), dtype)
    try:
        return rounded(_UNARY[kind](float(value)), dtype)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def binary(kind: str, a: Number, b: Number, dtype: DType) -> Number | None:
    """The operation on two known scalars, or None where it is better left to run."""
    if kind in _COMPARE:
        return _COMPARE[kind](a, b)
    try:
        if dtype is DType.BOOL:
            return bool(_INTEGER[kind](bool(a), bool(b)))
        if dtype.is_float:
            if math.isnan(a) or math.isnan(b):
                return None
            return rounded(_FLOAT[kind](float(a), float(b)), dtype)
        if kind in ("shl", "shr"):
            return _shift(kind, int(a), int(b), dtype)
        return wrap(_INTEGER[kind](int(a), int(b)), dtype)
    except (ValueError, ZeroDivisionError, OverflowError, KeyError):
        return None


def _shift(kind: str, a: int, b: int, dtype: DType) -> int:
    outside = b < 0 or b >= dtype.bits
    if kind == "shl":
        return 0 if outside else wrap(a << b, dtype)
    return (-1 if a < 0 else 0) if outside else a >> b


def literal(value: Number) -> str:
    """Python source of a known scalar."""
    if isinstance(value, float) and not math.isfinite(value):
        return "math.nan" if math.isnan(value) else ("math.inf" if value > 0 else "-math.inf")
    return repr(value)
