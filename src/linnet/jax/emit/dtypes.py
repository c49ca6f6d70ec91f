"""How each Linnet dtype is called in generated JAX code; every one of them is JAX's own."""

from __future__ import annotations

from linnet.backends.inputs import NAMES
from linnet.types import DType

HALF = frozenset({DType.F16, DType.BF16})


def spelled(dtype: DType) -> str:
    """The dtype as generated code writes it."""
    return "bool" if dtype is DType.BOOL else f"jnp.{NAMES[dtype]}"
