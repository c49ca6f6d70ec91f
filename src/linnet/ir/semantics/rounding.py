"""Conversions between dtypes, each rounded once.

Arithmetic on f16 and bf16 happens in f32 and is rounded to the dtype after each operation; for
`+ - * /` and the square root that equals the correctly rounded result. Transcendental functions
of dtypes up to f32 are worked out in f64 and rounded once.

Float to integer truncates toward zero; what lies outside the dtype becomes its nearest value, and
NaN becomes 0. Integers wrap. Anything but zero is true.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.ir.semantics.model import NUMPY, Array
from linnet.types import DType

_HALF = (DType.F16, DType.BF16)


def widen(x: Array, dtype: DType) -> Array:
    """The array in which arithmetic on `dtype` is done."""
    return x.astype(np.float32) if dtype in _HALF else x


def widest(x: Array) -> Array:
    """A float array as f64."""
    return x.astype(np.float64)


def narrow(x: Any, dtype: DType) -> Array:
    """A float result (f32 or f64) rounded once to `dtype`; other arrays as they are."""
    array = np.asarray(x)
    target = NUMPY[dtype]
    if array.dtype == target:
        return array
    if dtype is DType.BF16 and array.dtype == np.float64:
        array = _to_odd_f32(array)
    return np.asarray(array.astype(target))


def convert(x: Array, source: DType, target: DType) -> Array:
    """`x` of dtype `source` in `target`."""
    if source is target:
        return x
    if target is DType.BOOL:
        return np.asarray(widen(x, source) != 0)
    if source.is_float:
        wide = widen(x, source)
        return _to_integer(wide, target) if target.is_integer else narrow(wide, target)
    if target is DType.BF16 and source.bits == 64:
        return narrow(_to_odd(x).astype(np.float64), target)
    if target in _HALF:
        return narrow(x.astype(np.float64), target)
    return np.asarray(x.astype(NUMPY[target]))


def _to_integer(x: Array, target: DType) -> Array:
    low, high = target.integer_range
    whole = np.trunc(widest(x))
    # 2^63 - 1 is no float: compare with the first value past the range, which is a power of two.
    past = whole >= float(high + 1)
    under = whole < float(low)
    inside = np.where(past | under | np.isnan(whole), 0.0, whole)
    result = inside.astype(NUMPY[target])
    result = np.where(past, NUMPY[target].type(high), result)
    return np.asarray(np.where(under, NUMPY[target].type(low), result))


def _to_odd_f32(x: Array) -> Array:
    """f64 to f32 rounding to odd, so that rounding again to bf16 rounds only once."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    over = np.abs(back) > np.abs(x)
    down = np.where(over, np.nextafter(near, np.float32(0)), near)
    inexact = np.isfinite(x) & (down.astype(np.float64) != x)
    bits = np.asarray(down, np.float32).view(np.uint32)
    return np.asarray((bits | inexact.astype(np.uint32)).view(np.float32))


def _to_odd(x: Array) -> Array:
    """64-bit integers of which only the top bits matter, what was cut off kept as one odd bit."""
    large = np.abs(x.astype(np.float64)) >= 2.0**53
    low = x & x.dtype.type(0xFFF)
    kept = (x - low) | (low != 0).astype(x.dtype) * x.dtype.type(0x1000)
    return np.asarray(np.where(large, kept, x))
