"""How values of the program are held while a graph is written.

A tensor may be held smaller than its type says: a broadcast is kept as what it was made from until
an operator needs every element. Axes are counted from the right, starting at 1, since that is how
arrays line up:

    type [B, S, H], made from weight [H]:      rank 1, unit {}     H is there, S and B are missing
    type [B, S, H], made from rows [B, 1, 1]:  rank 3, unit {1, 2}

Tuples and structs are Python tuples of held values. An optional is `None`, `Present` or, where only
running tells, `Maybe`; an enum case is a number or a scalar of `i64`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from linnet.dims import Dim
from linnet.types import DType

Number = int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A tensor. `const` is the value of a scalar known while exporting (`value` is then made when
    asked for); `dims` is the whole shape."""

    value: ir.Value | None
    dtype: DType
    dims: tuple[Dim, ...]
    rank: int
    unit: frozenset[int] = frozenset()
    const: Number | None = None

    @staticmethod
    def whole(value: ir.Value, dtype: DType, dims: tuple[Dim, ...]) -> Held:
        return Held(value, dtype, dims, len(dims))

    @staticmethod
    def number(const: Number, dtype: DType, dims: tuple[Dim, ...] = ()) -> Held:
        return Held(None, dtype, dims, 0, const=const)

    def has(self, position: int) -> bool:
        """Whether the axis (counted from the right) is held with its full extent."""
        return position <= self.rank and position not in self.unit

    @property
    def is_whole(self) -> bool:
        missing = [p for p in range(1, len(self.dims) + 1) if not self.has(p)]
        full_rank = self.rank == len(self.dims) and self.const is None
        return full_rank and all(self.dims[-p].constant == 1 for p in missing)

    def reshaped(self, dims: tuple[Dim, ...]) -> Held:
        """The same held tensor for another whole shape."""
        return replace(self, dims=dims)


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """An optional that holds `value`."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """An optional of which only running tells whether it holds `value`: `flag` is a scalar bool;
    where it is false the value is all zeros."""

    flag: Held
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """An enum's case known only when run: a scalar of `i64`."""

    number: Held


def aligned(helds: tuple[Held, ...]) -> tuple[int, frozenset[int]]:
    """`(rank, unit)` of an elementwise result."""
    rank = max((h.rank for h in helds), default=0)
    unit = frozenset(p for p in range(1, rank + 1) if not any(h.has(p) for h in helds))
    return rank, unit
