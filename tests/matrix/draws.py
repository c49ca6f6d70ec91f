"""Random sizes and values for the operation table's cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.ir import Function
from linnet.ir.semantics import NUMPY
from linnet.types import DType, TensorType

from .rows import M, N, P

Rng = np.random.Generator
Sizes = dict[str, int]
# Functions that are asked for what is below 0 too: NaN.
SIGNED = ("sqrt", "rsqrt", "log")
# Rows whose sums could be infinite in one order and not in another.
PLAIN = ("contract", "contract, batched", "cumsum", "for static_for while", "dim")


def sizes(rng: Rng) -> Sizes:
    """Extents, 0 and 1 among them; nothing is looked up in what is empty."""
    n, m = (int(rng.choice([0, 1, 1, 2, 3, 4, 5, 9])) for _ in range(2))
    return {"N": n, "M": m, "P": int(rng.choice([0, 1, 2, 5])) if n and m else 0}


def inputs(row: str, given: Function, size: Sizes, rng: Rng) -> dict[str, Any]:
    numbers = {N: size["N"], M: size["M"], P: size["P"]}
    found: dict[str, Any] = {}
    for param in given.params:
        type_ = param.type
        assert isinstance(type_, TensorType) and isinstance(type_.dtype, DType)
        shape = [dim.evaluate(numbers) for dim in type_.dims]
        if param.name in ("i", "j", "k") or param.name.startswith("p_"):
            most = size["M"] if param.name in ("j", "k") else size["N"]
            drawn: Any = rng.integers(0, max(most, 1), shape)
        elif param.name == "count" or row == "for static_for while":
            drawn = _values(row, param.name, type_.dtype, shape, rng, small=True)
        else:
            drawn = _values(row, param.name, type_.dtype, shape, rng)
        found[param.name] = np.array(drawn, NUMPY[type_.dtype])
    return found


def _values(
    row: str, name: str, dtype: DType, shape: list[int], rng: Rng, small: bool = False
) -> Any:
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape)
    if dtype.is_float:
        return _floats(row, shape, rng)
    low, high = (max(dtype.integer_range[0], -1), 5) if small else dtype.integer_range
    second = name[0] in "ys"
    if row in ("div", "rem") and second:  # a division by 0 has no value
        low, high = (1, 9) if dtype.cls == "unsigned" or rng.random() < 0.5 else (-9, -1)
    elif row in ("shl", "shr") and second:
        low, high = max(low, -3), min(high, 70)
    elif rng.random() < 0.4 and row not in ("div", "rem"):
        low, high = max(low, -3), min(high, 9)
    return rng.integers(low, high, shape, dtype=NUMPY[dtype], endpoint=True)


def _floats(row: str, shape: list[int], rng: Rng) -> Any:
    scale = 10.0 ** rng.integers(-3, 3, shape) if row == "cast" else 1.5
    wide = np.asarray(rng.normal(size=shape) * scale)
    if row in SIGNED and rng.random() < 0.7:
        wide = np.abs(wide)
    if row not in PLAIN and wide.size > 3 and rng.random() < 0.5:
        wide.flat[0], wide.flat[1], wide.flat[2] = -0.0, np.nan, rng.choice([-np.inf, np.inf])
    return wide
