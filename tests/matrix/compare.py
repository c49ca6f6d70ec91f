"""When two runs of one program agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

# Bits of the significand, and the exponent of the smallest normal number.
_FLOATS = {"bfloat16": (8, -126), "float16": (11, -14), "float32": (24, -126),
           "float64": (53, -1022)}  # fmt: skip
NARROW = ("bfloat16", "float16")


def flat(value: Any) -> Iterator[Any]:
    """The arrays of a result, however it is nested; what is absent is left out."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from flat(item)
    elif isinstance(value, dict):
        yield from flat(tuple(value.values()))
    elif value is not None:
        yield value


def difference(got: Any, want: Any) -> float:
    """The largest difference relative to 1 or to the values; infinite where shapes or dtypes
    differ or one side alone is not a number."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if got.dtype.kind in "iub" and got.dtype != ml_dtypes.bfloat16:
        return 0.0 if np.array_equal(got, want) else _gap(got, want)
    return _gap(got, want)


def _gap(got: Array, want: Array) -> float:
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, np.abs(a - b)) / np.maximum(1.0, np.abs(b))
    return float(np.nan_to_num(gap, nan=0.0, posinf=np.inf).max(initial=0.0))


def units(got: Any, want: Any) -> float:
    """How many units in the last place of the dtype two float arrays differ by, at most; arrays
    of other dtypes are equal (0) or not (infinite)."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if str(got.dtype) not in _FLOATS:
        return 0.0 if np.array_equal(got, want) else float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    bits, least = _FLOATS[str(got.dtype)]
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(b)
        unit = np.exp2(np.maximum(exponent - 1, least).astype(np.float64) - (bits - 1))
        gap = np.where((a == b) | np.isnan(a), 0.0, np.abs(a - b) / unit)
    return float(np.nan_to_num(gap, nan=np.inf).max(initial=0.0))


def near(got: Any, want: Any) -> bool:
    """A few roundings of 1: for functions where they cross zero."""
    a, b = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    limit = 4 * float(ml_dtypes.finfo(np.asarray(want).dtype).eps)
    with np.errstate(invalid="ignore"):
        gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return a.shape == b.shape and bool(gap.max(initial=0.0) <= limit)


def close(got: Any, want: Any, scale: float = 1.0) -> bool:
    """Sums by any order: a few roundings of their terms' size."""
    a, b = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    tolerance = {"float64": 1e-12, "float32": 1e-5}.get(str(np.asarray(want).dtype), 2e-2) * scale
    return a.shape == b.shape and np.allclose(a, b, tolerance, tolerance * 10, equal_nan=True)
