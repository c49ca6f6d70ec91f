"""The table of native implementations: which op, when, and the code."""

from __future__ import annotations

from linnet.backends.natives import Native, Table
from linnet.native.natives import attention, basics, caches, sequences
from linnet.native.natives.base import KernelWriter
from linnet.passes.natives import NativeSelector

ROWS: tuple[Native[KernelWriter], ...] = (
    *basics.NATIVES,
    *attention.NATIVES,
    *caches.NATIVES,
    *sequences.NATIVES,
)
TABLE: Table[KernelWriter] = Table(ROWS)
KERNELS: dict[str, KernelWriter] = TABLE.kernels


decide = TABLE.decide


def selector(numerics: str, device: str = "cpu", trainable: bool = False) -> NativeSelector | None:
    """What `lower` asks for each call of an op."""
    return TABLE.selector(numerics, device, trainable)
