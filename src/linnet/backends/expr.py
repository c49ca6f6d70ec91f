"""Pieces of generated Python, and how the tensor they make lies in memory.

A value of shape `[B, S, H]` may be held smaller than its type says: a broadcast is kept as the view
it was made from until somebody needs every element. Axes are counted from the right, starting at
1, since that is how arrays line up:

    type [B, S, H], made from weight [H]:      rank 1, unit {}     H is there, S and B are missing
    type [B, S, H], made from rows [B, 1, 1]:  rank 3, unit {1, 2}

A `host` value is a Python number standing for a scalar or for a tensor of equal elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linnet.backends.folding import Number, literal
from linnet.types import DType

ATOM, POWER, UNARY, MUL, ADD, SHIFT, AND, XOR, OR, COMPARE, NOT, LAND, LOR, TERNARY = range(
    20, 6, -1
)

NONE: frozenset[int] = frozenset()
NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Expr:
    """`text` at precedence `prec`. `names` are the local variables in it.

    `bounds` encloses a host integer's values. `alias` holds the states whose memory the array may
    share ('?' for memory of unknown origin), where a backend follows that.
    """

    text: str
    prec: int = ATOM
    host: bool = False
    const: Number | None = None
    bounds: tuple[int, int] | None = None
    rank: int = 0
    unit: frozenset[int] = NONE
    names: frozenset[str] = NO_NAMES
    alias: frozenset[str] = NO_NAMES

    def at(self, prec: int) -> str:
        """The text, in parentheses where it binds less tightly than `prec`."""
        return self.text if self.prec >= prec else f"({self.text})"

    def renamed(self, name: str) -> Expr:
        """The same value held by a variable."""
        return replace(self, text=name, prec=ATOM, names=frozenset((name,)))

    def has(self, position: int) -> bool:
        """Whether the axis (counted from the right) is there with its full extent."""
        return position <= self.rank and position not in self.unit


def number(value: Number) -> Expr:
    """A scalar known while generating."""
    text = literal(value)
    whole = (value, value) if type(value) is int else None
    prec = UNARY if text.startswith("-") else ATOM
    return Expr(text, prec, host=True, const=value, bounds=whole)


def integer(text: str, prec: int, bounds: tuple[int, int], names: frozenset[str]) -> Expr:
    """A Python integer that is known only when the code runs."""
    return Expr(text, prec, host=True, bounds=bounds, names=names)


def fits(bounds: tuple[int, int] | None, dtype: DType) -> bool:
    low, high = dtype.integer_range
    return bounds is not None and low <= bounds[0] and bounds[1] <= high


def joined(exprs: tuple[Expr, ...]) -> frozenset[str]:
    """The variables in any of several expressions."""
    return frozenset().union(*(each.names for each in exprs))


def aligned(exprs: tuple[Expr, ...]) -> tuple[int, frozenset[int]]:
    """`(rank, unit)` of an elementwise result over tensors and host numbers."""
    tensors = [each for each in exprs if not each.host]
    rank = max((each.rank for each in tensors), default=0)
    unit = frozenset(p for p in range(1, rank + 1) if not any(each.has(p) for each in tensors))
    return rank, unit
