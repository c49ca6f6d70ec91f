"""The table of native implementations: which op, when, and the operators it becomes."""

from __future__ import annotations

from linnet.onnx.emit.trace import Kernel
from linnet.passes.natives import NativeSelector

NUMERICS = ("exact", "equivalent", "fast")
KERNELS: dict[str, Kernel] = {}


def selector(numerics: str, opset: int, runtime_operators: bool) -> NativeSelector | None:
    """What `lower` asks for each call of an op."""
    return None
