"""The table of native implementations: which op, when, and the code."""

from __future__ import annotations

from linnet.backends.natives import Native, Table
from linnet.native.natives import attention, basics, caches
from linnet.native.natives.base import KernelWriter
from linnet.passes.natives import NativeSelector

ROWS: tuple[Native[KernelWriter], ...] = (*basics.NATIVES, *attention.NATIVES, *caches.NATIVES)
TABLE: Table[KernelWriter] = Table(ROWS)
KERNELS: dict[str, KernelWriter] = TABLE.kernels


def selector(numerics: str) -> NativeSelector | None:
    """What `lower` asks for each call of an op."""
    return TABLE.selector(numerics, "cpu", trainable=False)
