"""Arithmetic on compile-time numbers, and whether a literal fits a dtype."""

from __future__ import annotations

import math

from linnet.dims import Dim, dmax, dmin, floordiv, mod
from linnet.elaborate.operands import FloatOperand, Number
from linnet.types import AnyDType, DType, dtypes_of

# The largest finite value of each float dtype, plus half a unit in the last place: what rounds
# to infinity does not fit.
_FLOAT_LIMIT = {
    DType.F16: 65520.0,
    DType.BF16: float.fromhex("0x1.ffp127"),
    DType.F32: float.fromhex("0x1.ffffffp127"),
    DType.F64: math.inf,
}


def fits(value: int | float, dtype: AnyDType) -> bool:
    """Whether a literal fits every dtype that `dtype` may stand for.

    An integer fits a float dtype when it does not overflow it; a float literal fits floats only.
    """
    return all(_fits_one(value, concrete) for concrete in dtypes_of(dtype))


def _fits_one(value: int | float, dtype: DType) -> bool:
    if dtype.is_integer:
        low, high = dtype.integer_range
        return isinstance(value, int) and low <= value <= high
    if dtype.is_float:
        return abs(value) < _FLOAT_LIMIT[dtype]
    return False


def int_arithmetic(op: str, left: Dim, right: Dim) -> Dim | None:
    """`left op right` on compile-time integers; None for an operator they lack.

    The caller has shown a divisor to be positive. Raises DimError when the result is too large.
    """
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return floordiv(left, right)
        case "%":
            return mod(left, right)
        case "min":
            return dmin(left, right)
        case "max":
            return dmax(left, right)
        case _:
            return None


def float_arithmetic(op: str, left: float, right: float) -> float | None:
    """`left op right` on float literals; None when it has no finite value or no such operator."""
    try:
        match op:
            case "+":
                value = left + right
            case "-":
                value = left - right
            case "*":
                value = left * right
            case "/":
                value = left / right
            case "min":
                value = min(left, right)
            case "max":
                value = max(left, right)
            case _:
                return None
    except (OverflowError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None


def as_float(number: Number) -> float | None:
    """The number as a float literal; None for an integer that is not a constant."""
    if isinstance(number, FloatOperand):
        return number.value
    constant = number.dim.constant
    try:
        return None if constant is None else float(constant)
    except OverflowError:
        return None
