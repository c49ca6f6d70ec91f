"""Memory for weights and states.

Reading the weights is most of a decoding step, and a processor reads ahead within a page only: from
pages of 4 KiB, ONNX Runtime's products took 1.4 times as long as from pages of 2 MiB (SmolLM2's
layers in f32, one row, two cores). So weights lie in large pages where the system has them. States
do not: a cache is filled from its heads' starts, and large pages would take in what lies far ahead.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from linnet.onnx.runtime.values import Array

PAGE = 1 << 21
BLOCK = 1 << 26
ALIGNED = 64


class Memory:
    """Gives zeroed arrays. They lie in blocks of many pages, `large` ones if asked for; pages that
    nobody has written to take no memory yet. A block is freed with the last of its arrays."""

    def __init__(self, large: bool) -> None:
        self.large = large
        self.block = np.zeros(0, np.uint8)
        self.used = 0

    def zeros(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        count = int(np.prod(shape, dtype=np.int64))
        size = count * dtype.itemsize
        if size == 0:
            return np.zeros(shape, dtype)
        if self.used + size > len(self.block):
            self.block = _pages(max(BLOCK, size), self.large)
            self.used = 0
        made = self.block[self.used : self.used + size].view(dtype).reshape(shape)
        self.used += -(-size // ALIGNED) * ALIGNED
        return made

    def copy(self, array: Array) -> Array:
        made = self.zeros(array.shape, array.dtype)
        made[...] = array
        return made


def _pages(size: int, large: bool) -> Array:
    """Zeros, at least `size` bytes."""
    whole = -(-size // PAGE) * PAGE
    advice = getattr(mmap, "MADV_HUGEPAGE" if large else "MADV_NOHUGEPAGE", None)
    if advice is None:  # no such pages in this system
        return np.zeros(whole, np.uint8)
    block = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without them
        block.madvise(advice)
    return np.frombuffer(block, np.uint8)
