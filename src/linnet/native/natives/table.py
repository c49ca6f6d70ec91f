"""The table of native implementations: which op, when, and the code."""

from __future__ import annotations

from collections.abc import Callable

from linnet.backends.natives import Native, Table
from linnet.ir import Op
from linnet.native.emit.writer import Writer
from linnet.passes.natives import NativeSelector

KernelWriter = Callable[[Writer, Op], None]
ROWS: tuple[Native[KernelWriter], ...] = ()
TABLE: Table[KernelWriter] = Table(ROWS)
KERNELS: dict[str, KernelWriter] = TABLE.kernels


def selector(numerics: str) -> NativeSelector | None:
    """What `lower` asks for each call of an op."""
    return TABLE.selector(numerics, "cpu", trainable=False)
