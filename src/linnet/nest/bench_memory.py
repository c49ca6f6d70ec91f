"""How fast this machine's memory is read, and how much of it a process has taken."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

_BYTES = 1 << 30  # far more than any cache holds


class Memory:
    """A block of memory to read again and again, on so many threads."""

    def __init__(self, threads: int, size: int = _BYTES) -> None:
        # Written once, so that every page is there and is a page of its own.
        block = np.ones(max(size // 8, threads), np.int64)
        self._parts = np.array_split(block, threads)
        self._size = block.nbytes
        self._threads = threads

    def bandwidth(self, rounds: int = 3) -> float:
        """Bytes read in a second, the best of some rounds. A bitwise `or` over the block: one of
        the reductions that NumPy does as fast as memory delivers."""
        best = float("inf")
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(_read, self._parts))
            for _ in range(rounds):
                start = perf_counter()
                list(pool.map(_read, self._parts))
                best = min(best, perf_counter() - start)
        return self._size / best


def _read(part: np.ndarray[Any, Any]) -> int:
    return int(np.bitwise_or.reduce(part))


def peak_memory() -> int | None:
    """The most bytes that this process has had in memory at once; None where nobody tells.

    On Linux as its own pages are counted: what `getrusage` says starts with the peak of the
    process that started this one.
    """
    try:
        for line in Path("/proc/self/status").read_text("utf-8", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ModuleNotFoundError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
