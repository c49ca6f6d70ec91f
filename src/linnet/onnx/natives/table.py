"""The table of native implementations: which op, when, and the operators it becomes.

`exact` numerics takes none: every op runs its body. What has no row here runs its body too, which
ONNX says with plain operators from opset 20 on.
"""

from __future__ import annotations

from collections.abc import Mapping

from linnet.backends.natives import NUMERICS, Decision, Table
from linnet.onnx.emit.trace import Kernel
from linnet.onnx.natives import attention, basics, caches
from linnet.onnx.natives.model import target
from linnet.passes.natives import NativeQuery, NativeSelector

TABLE: Table[Kernel] = Table((*basics.NATIVES, *attention.NATIVES, *caches.NATIVES))
KERNELS: Mapping[str, Kernel] = TABLE.kernels


def selector(numerics: str, opset: int, runtime_operators: bool) -> NativeSelector | None:
    """What `lower` asks for each call of an op."""
    return TABLE.selector(numerics, target(opset, runtime_operators), False)


def decide(
    query: NativeQuery, numerics: str = "fast", opset: int = 24, runtime_operators: bool = False
) -> tuple[Decision[Kernel], ...]:
    """What the table says about a call, row by row, up to the first row that applies."""
    return TABLE.decide(query, numerics, target(opset, runtime_operators))


__all__ = ["KERNELS", "NUMERICS", "TABLE", "Decision", "decide", "selector"]
