"""Whether one polynomial inequality follows from others over non-negative integers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from linnet.dims import polynomial
from linnet.dims.budget import Budget
from linnet.dims.dim import Dim
from linnet.dims.polynomial import Monomial
from linnet.dims.simplex import infeasible

ROUNDS = 3
MAX_CONSTRAINTS = 48
MAX_MULTIPLES = 12
POINTS = 10


def tighten(bound: Dim) -> Dim:
    """The strongest integer form of `bound >= 0`: divided by what divides its other terms."""
    common = polynomial.content(c for monomial, c in bound.terms.items() if monomial)
    if common <= 1:
        return bound
    return Dim({m: q for m, c in bound.terms.items() if (q := c // common)})


def follows(goal: Dim, bounds: Sequence[Dim], budget: Budget) -> bool:
    """Whether `goal >= 0` wherever every bound is `>= 0`, every symbol being at least 0.

    Each monomial counts as one non-negative unknown. `goal <= -1` is added to the bounds, and to
    them the products of bounds with monomials that can cancel a term in the way; if that linear
    system has no rational solution, the goal holds.
    """
    budget.spend(4 * len(goal.terms) + 4 * sum(len(bound.terms) for bound in bounds))
    if _fails_somewhere(goal, bounds):
        return False
    denial = tighten(-goal - 1)
    multiples = islice(_multiples(denial, bounds), MAX_MULTIPLES)
    constraints = dict.fromkeys((denial, *multiples, *_powers(denial)))
    constraints.update((bound, None) for bound in bounds if bound.terms.get((), 0) < 0)
    wanted = list(dict.fromkeys(m for constraint in constraints for m in _positive(constraint)))
    seen = set(wanted)
    for _ in range(ROUNDS):
        if _infeasible(constraints, budget):
            return True
        before = len(constraints)
        fresh: dict[Monomial, None] = {}
        for product in _products(bounds, wanted):
            if len(constraints) == MAX_CONSTRAINTS:
                break
            budget.spend(4 * len(product.terms))
            constraints[product] = None
            fresh.update((m, None) for m in _positive(product) if m not in seen)
        if len(constraints) == before:
            return False
        wanted = list(fresh)
        seen.update(fresh)
    return _infeasible(constraints, budget)


def _infeasible(constraints: Iterable[Dim], budget: Budget) -> bool:
    rows = [_row(constraint) for constraint in constraints]
    budget.spend(2 * sum(len(row) for row, _ in rows))
    return infeasible(rows, budget)


def _multiples(denial: Dim, bounds: Sequence[Dim]) -> Iterator[Dim]:
    """Products of the denial in which a positive term meets a negative term of a bound."""
    wanted = _positive(denial)
    for bound in bounds:
        for term, coefficient in bound.terms.items():
            if coefficient < 0 and len(term) > 1:
                for monomial in wanted:
                    factor = polynomial.monomial_quotient(term, monomial)
                    if factor:
                        yield denial * Dim({factor: 1})


def _positive(bound: Dim) -> list[Monomial]:
    return [monomial for monomial, c in bound.terms.items() if c > 0 and monomial]


def _products(bounds: Sequence[Dim], wanted: Sequence[Monomial]) -> Iterator[Dim]:
    """Multiples of bounds in which a wanted monomial has a negative coefficient."""
    for monomial in wanted:
        for bound in bounds:
            for term, coefficient in bound.terms.items():
                if coefficient < 0:
                    factor = polynomial.monomial_quotient(monomial, term)
                    if factor is not None:
                        yield bound * Dim({factor: 1}) if factor else bound


def _powers(denial: Dim) -> Iterator[Dim]:
    """`m <= m * n` for integers, where all of `n` is in `m` too: both are 0, or `n >= 1`."""
    for small in _positive(denial):
        for large, coefficient in denial.terms.items():
            same = coefficient < 0 and set(small) == set(large)
            if same and polynomial.monomial_quotient(large, small):
                yield Dim({large: 1, small: -1})


def _row(bound: Dim) -> tuple[Mapping[Hashable, int], int]:
    terms: dict[Hashable, int] = {m: c for m, c in bound.terms.items() if m}
    return terms, bound.terms.get((), 0)


def _fails_somewhere(goal: Dim, bounds: Sequence[Dim]) -> bool:
    """Whether one of a few points meets all bounds but not the goal; saves the search."""
    for point in range(POINTS):
        if _at(goal, point) < 0 and all(_at(bound, point) >= 0 for bound in bounds):
            return True
    return False


def _at(dim: Dim, point: int) -> int:
    total = 0
    for monomial, coefficient in dim.terms.items():
        for symbol in monomial:
            coefficient *= _coordinate(symbol, point)
        total += coefficient
    return total


def _coordinate(symbol: Any, point: int) -> int:
    """Points: the origin, all ones, then scattered small numbers, the later the larger."""
    if point < 2:
        return point
    scattered: int = (symbol.uid * 0x9E3779B1 >> 3 * point) % (1 << 30)
    return scattered % (point + 1)
