"""Integer arithmetic as Linnet means it, where Python means something else."""

from __future__ import annotations


def host_divide(a: int, b: int) -> int:
    """a / b truncated toward zero"""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def host_remainder(a: int, b: int) -> int:
    """a - b * (a / b), with the sign of a"""
    return a - b * host_divide(a, b)


def host_shift_left(a: int, b: int, width: int) -> int:
    """a << b, 0 for b outside 0 .. width - 1"""
    return a << b if 0 <= b < width else 0


def host_shift_right(a: int, b: int, width: int) -> int:
    """a >> b, 0 or -1 for b outside 0 .. width - 1"""
    return a >> (b if 0 <= b < width else width)
