"""How each Linnet dtype is held in generated PyTorch code.

PyTorch has next to no arithmetic on `u16`, `u32` and `u64`. Generated code carries the first two
as `int64` holding the value, the last as `int64` holding the same 64 bits; parameters, inputs and
results keep the dtypes of their types and are converted where they enter and leave.
"""

from __future__ import annotations

from linnet.backends.inputs import NAMES
from linnet.types import DType

STORED = NAMES
WIDE = frozenset({DType.U16, DType.U32, DType.U64})


def carried(dtype: DType) -> str:
    """The name of the torch dtype that values of `dtype` have inside generated code."""
    return "torch.int64" if dtype in WIDE else f"torch.{STORED[dtype]}"


def wrap_mask(dtype: DType) -> int | None:
    """The mask that brings a carried value back into range, for `u16` and `u32`."""
    return {DType.U16: 0xFFFF, DType.U32: 0xFFFFFFFF}.get(dtype)
