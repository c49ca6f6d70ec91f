"""JAX's table of native implementations."""

from __future__ import annotations

from linnet.backends.natives import NUMERICS, Table
from linnet.jax.natives import attention, basics, caches, losses, sequences
from linnet.jax.natives.model import KernelWriter, Native

ROWS: tuple[Native, ...] = (
    *basics.NATIVES, *attention.NATIVES, *caches.NATIVES, *losses.NATIVES, *sequences.NATIVES,
)  # fmt: skip
TABLE: Table[KernelWriter] = Table(ROWS)
KERNELS = TABLE.kernels
decide = TABLE.decide
selector = TABLE.selector

__all__ = ["KERNELS", "NUMERICS", "ROWS", "TABLE", "decide", "selector"]
