"""The meaning of constants and of elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.ir.semantics.model import NUMPY, Array, Call, integer, meaning
from linnet.ir.semantics.rounding import convert, narrow, widen, widest
from linnet.types import DType, EnumType


def scalar_of(value: int | float | bool, dtype: DType) -> Array:
    """A Python number as a scalar of `dtype`, which it fits or is rounded to."""
    if isinstance(value, int) and not isinstance(value, bool):
        if dtype.is_integer:
            return np.array(value, NUMPY[dtype])
        kind = DType.I64 if -(2**63) <= value < 2**63 else DType.U64
        return convert(np.array(value, NUMPY[kind]), kind, dtype)
    if isinstance(value, float):
        return narrow(np.array(value, np.float64), dtype)
    return np.array(value, NUMPY[dtype])


@meaning("const")
def _const(call: Call) -> Any:
    return scalar_of(call.attrs["value"], call.result.dtype)


@meaning("dim")
def _dim(call: Call) -> Any:
    value, dtype = integer(call.attrs["dim"]), call.result.dtype
    if dtype.is_integer:
        low, high = dtype.integer_range
        if not low <= value <= high:
            raise call.error(f"the size {value} does not fit {dtype}")
    return scalar_of(value, dtype)


@meaning("iota")
def _iota(call: Call) -> Any:
    (count,) = call.result.shape
    return np.arange(count).astype(call.result.numpy)


@meaning("cast")
def _cast(call: Call) -> Any:
    return convert(call.operands[0], call.dtype, call.result.dtype)


@meaning("neg")
def _neg(call: Call) -> Any:
    return np.negative(call.operands[0])


@meaning("not")
def _not(call: Call) -> Any:
    return np.logical_not(call.operands[0])


@meaning("abs")
def _abs(call: Call) -> Any:
    return np.abs(call.operands[0])


_ERF: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])

_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": lambda x: _ERF(x) if x.size else x,
    "floor": np.floor,
}


@meaning(*_FUNCTIONS)
def _function(call: Call) -> Any:
    return narrow(_FUNCTIONS[call.kind](widest(call.operands[0])), call.dtype)


_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@meaning(*_ARITHMETIC)
def _arithmetic(call: Call) -> Any:
    a, b = (widen(x, call.dtype) for x in call.operands)
    return narrow(_ARITHMETIC[call.kind](a, b), call.dtype)


@meaning("div", "rem")
def _division(call: Call) -> Any:
    a, b = (widen(x, call.dtype) for x in call.operands)
    if call.dtype.is_float:
        return narrow(np.divide(a, b) if call.kind == "div" else np.fmod(a, b), call.dtype)
    if np.any(b == 0):
        raise call.error("an integer is divided by zero")
    if call.dtype.cls == "unsigned":
        return a // b if call.kind == "div" else a % b
    # -1 apart: the smallest integer divided by it wraps.
    by_minus_one = b == -1
    safe = np.where(by_minus_one, b.dtype.type(1), b)
    rest = np.where(by_minus_one, b.dtype.type(0), np.fmod(a, safe))
    if call.kind == "rem":
        return rest
    return np.where(by_minus_one, np.negative(a), (a - rest) // safe)


_BITS: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@meaning(*_BITS)
def _bits(call: Call) -> Any:
    return _BITS[call.kind](*call.operands)


@meaning("shl", "shr")
def _shift(call: Call) -> Any:
    """A count at or past the width, or below zero, shifts everything out."""
    x, count = call.operands
    past = (count < 0) | (count >= call.dtype.bits)
    by = np.where(past, count.dtype.type(0), count)
    if call.kind == "shl":
        return np.where(past, x.dtype.type(0), np.left_shift(x, by))
    emptied = np.where(x < 0, x.dtype.type(-1), x.dtype.type(0)) if x.dtype.kind == "i" else 0
    return np.where(past, emptied, np.right_shift(x, by)).astype(x.dtype)


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@meaning(*_COMPARE)
def _compare(call: Call) -> Any:
    if isinstance(call.inputs[0], EnumType):
        return np.array(_COMPARE[call.kind](*call.operands))
    a, b = (widen(x, call.dtype) for x in call.operands)
    return _COMPARE[call.kind](a, b)


@meaning("select")
def _select(call: Call) -> Any:
    return np.where(*call.operands)
