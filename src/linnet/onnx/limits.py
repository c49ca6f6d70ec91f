"""What ONNX Runtime has no exact way to do."""

from __future__ import annotations

from linnet.backends.limits import Limit
from linnet.types import DType

LIMITS: tuple[Limit, ...] = (
    Limit(
        "erf",
        frozenset({DType.F64}),
        "`erf` of f64",
        "ONNX Runtime has it in f32 alone",
        "cast to f32 here",
    ),
)
