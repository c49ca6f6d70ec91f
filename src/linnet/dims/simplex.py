"""Exact infeasibility of linear inequalities over non-negative unknowns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import gcd

from linnet.dims.budget import Budget


def infeasible(constraints: Sequence[tuple[Mapping[Hashable, int], int]], budget: Budget) -> bool:
    """Whether no rational `x >= 0` meets every `sum(c[k] * x[k]) + constant >= 0`.

    The dictionary form of the simplex method in integers, with Bland's rule: one row for each
    constraint's slack, pivoted until no slack is negative (feasible) or a negative one cannot
    grow (infeasible).
    """
    columns: dict[Hashable, int] = {}
    rows: dict[int, _Row] = {}
    for coefficients, _ in constraints:
        for key in coefficients:
            columns.setdefault(key, len(columns))
    for index, (coefficients, constant) in enumerate(constraints):
        row = {columns[key]: value for key, value in coefficients.items() if value}
        rows[len(columns) + index] = _Row(1, constant, row)
    while True:
        leaving = min((basic for basic, row in rows.items() if row.constant < 0), default=None)
        if leaving is None:
            return False
        row = rows[leaving].coefficients
        entering = min((column for column, value in row.items() if value > 0), default=None)
        if entering is None:
            return True
        budget.spend(_pivot(rows, leaving, entering))


class _Row:
    """`scale * basic = constant + sum(coefficients * nonbasic)`, `scale > 0`."""

    __slots__ = ("coefficients", "constant", "scale")

    def __init__(self, scale: int, constant: int, coefficients: dict[int, int]) -> None:
        self.scale = scale
        self.constant = constant
        self.coefficients = coefficients


def _pivot(rows: dict[int, _Row], leaving: int, entering: int) -> int:
    """Solve the leaving row for the entering unknown and put that into the other rows; returns
    how many numbers that touched."""
    old = rows.pop(leaving)
    pivot = old.coefficients.pop(entering)
    solved = {column: -value for column, value in old.coefficients.items()}
    solved[leaving] = old.scale
    new = _Row(pivot, -old.constant, solved)
    touched = len(rows)
    for row in rows.values():
        factor = row.coefficients.pop(entering, 0)
        if not factor:
            continue
        merged = {column: value * pivot for column, value in row.coefficients.items()}
        for column, value in solved.items():
            total = merged.get(column, 0) + factor * value
            if total:
                merged[column] = total
            else:
                del merged[column]
        row.scale, row.constant = row.scale * pivot, row.constant * pivot + factor * new.constant
        row.coefficients = merged
        _reduce(row)
        touched += len(merged) + len(solved)
    rows[entering] = new
    return touched


def _reduce(row: _Row) -> None:
    common = gcd(row.scale, row.constant, *row.coefficients.values())
    if common > 1:
        row.scale //= common
        row.constant //= common
        row.coefficients = {column: v // common for column, v in row.coefficients.items()}
