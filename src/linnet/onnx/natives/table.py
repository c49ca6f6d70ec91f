"""The table of native implementations: which op, when, and the operators it becomes.

`exact` numerics takes none: every op runs its body. What has no row here runs its body too, which
ONNX says with plain operators from opset 20 on.
"""

from __future__ import annotations

from collections.abc import Mapping

from linnet.backends.natives import NUMERICS, Decision, Table
from linnet.onnx.emit.trace import Kernel
from linnet.onnx.natives import attention, basics, caches, rotary
from linnet.onnx.natives.model import target
from linnet.passes.natives import NativeQuery, NativeSelector

TABLE: Table[Kernel] = Table(
    (*basics.NATIVES, *rotary.NATIVES, *attention.NATIVES, *caches.NATIVES)
)
KERNELS: Mapping[str, Kernel] = TABLE.kernels


DEFAULT = target(24, False)
LOADED = target(24, True)  # what `load_model` asks for


def selector(
    numerics: str, device: str = DEFAULT, trainable: bool = False
) -> NativeSelector | None:
    """What `lower` asks for each call of an op; `device` is a `target`."""
    return TABLE.selector(numerics, _target(device), trainable)


def decide(
    query: NativeQuery, numerics: str = "fast", device: str = DEFAULT, trainable: bool = False
) -> tuple[Decision[Kernel], ...]:
    """What the table says about a call, row by row, up to the first row that applies."""
    return TABLE.decide(query, numerics, _target(device), trainable)


def _target(device: str) -> str:
    return device if device.startswith("opset ") else DEFAULT


__all__ = [
    "DEFAULT",
    "KERNELS",
    "LOADED",
    "NUMERICS",
    "TABLE",
    "Decision",
    "decide",
    "selector",
    "target",
]
