"""PyTorch's table of native implementations: which op, when, and the code."""

from __future__ import annotations

from linnet.backends.natives import NUMERICS, Decision, Table
from linnet.torch.natives import attention, basics, caches, losses, sequences
from linnet.torch.natives.model import KernelWriter, Native

ROWS: tuple[Native, ...] = (
    *basics.NATIVES, *attention.NATIVES, *caches.NATIVES, *losses.NATIVES, *sequences.NATIVES,
)  # fmt: skip

TABLE: Table[KernelWriter] = Table(ROWS)
NATIVES = TABLE.by_op
KERNELS = TABLE.kernels
decide = TABLE.decide
selector = TABLE.selector

__all__ = ["KERNELS", "NATIVES", "NUMERICS", "ROWS", "TABLE", "Decision", "decide", "selector"]
