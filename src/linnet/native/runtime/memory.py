"""Memory that the system gives when it is first written."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_SMALL = 1 << 16  # bytes


def untouched_zeros(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """Zeros of which only what is written costs memory, a small page at a time. NumPy asks for huge
    pages, where the first position of each head of a cache would cost 2 MiB and their clearing."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _SMALL or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    made: np.ndarray[Any, Any] = np.frombuffer(held, np.uint8).view(dtype)
    return made.reshape(shape)


def zeros(
    shape: Sequence[int], dtype: Any, what: str, make: Callable[..., Any] = untouched_zeros
) -> np.ndarray[Any, Any]:
    """Zeros for `what`. Raises `MemoryError` that names it where there is no room for them."""
    try:
        made: np.ndarray[Any, Any] = make(shape, dtype)
    except (MemoryError, OSError, OverflowError, ValueError):
        size = math.prod(shape) * np.dtype(dtype).itemsize
        raise MemoryError(
            f"there is not enough memory for {what} of shape {list(shape)} and "
            f"{np.dtype(dtype).name}: it takes {size:,} bytes"
        ) from None
    return made
