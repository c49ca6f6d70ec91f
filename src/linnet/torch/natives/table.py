"""The table of native implementations: which op, when, and the code."""

from __future__ import annotations

from linnet.passes.natives import NativeChoice, NativeQuery, NativeSelector
from linnet.torch.emit.module import KernelWriter

NUMERICS = ("exact", "equivalent", "fast")
KERNELS: dict[str, KernelWriter] = {}


def selector(numerics: str, device: str, trainable: bool) -> NativeSelector | None:
    """What `lower` asks for each call of an op."""
    if numerics == "exact":
        return None

    def select(query: NativeQuery) -> NativeChoice | None:
        return None

    return select
