"""Operations on constants, computed by the table's own meanings.

Only operations whose result IEEE 754 or integer arithmetic fixes to the bit: `exp`, `sin` and their
like differ between libraries and stay operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from linnet.ir import Op, Value
from linnet.types import DType, TensorType

FOLDABLE = frozenset(
    "cast neg not abs floor sqrt rsqrt add sub mul div rem min max and or xor shl shr "
    "eq ne lt le gt ge select".split()
)


def folded(
    op: Op, operands: Sequence[Value], defs: Mapping[Value, Op]
) -> int | float | bool | None:
    """The value of a scalar operation on constants; None where it is not fixed or not finite."""
    if op.kind not in FOLDABLE:
        return None
    if any(v not in defs or defs[v].kind != "const" for v in operands):
        return None
    from linnet.ir.semantics import SEMANTICS, Call, EvaluationError
    from linnet.ir.semantics.elementwise import scalar_of

    types = tuple(value.type for value in operands)
    arrays = []
    for value, type_ in zip(operands, types, strict=True):
        if not isinstance(type_, TensorType) or not isinstance(type_.dtype, DType):
            return None
        arrays.append(scalar_of(defs[value].attrs["value"], type_.dtype))
    call = Call(op.kind, tuple(arrays), op.attrs, (op.result.type,), types, op.span)
    try:
        result: int | float | bool = SEMANTICS[op.kind](call).item()
    except EvaluationError:
        return None
    return result if math.isfinite(result) else None


def size_constant(size: int, dtype: DType) -> int | float | None:
    """A size as a scalar of a numeric dtype; None where it does not fit."""
    from linnet.ir.semantics.elementwise import scalar_of

    low, high = dtype.integer_range if dtype.is_integer else (-(1 << 63), (1 << 63) - 1)
    if not low <= size <= high:
        return None
    value: int | float = scalar_of(size, dtype).item()
    return value if math.isfinite(value) else None
