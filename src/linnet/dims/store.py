"""What is known about some symbols, and the questions it answers by itself.

Everything is a polynomial over symbols only: each division, remainder, minimum and maximum is named
by symbols of its own, which are at least 0 like all others (a number of unknown sign is the
difference of two). `canonical` in `knowledge.py` makes such polynomials.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal, Self

from linnet.dims import polynomial
from linnet.dims.budget import Budget
from linnet.dims.dim import Dim, Kind, Op, Symbol
from linnet.dims.polynomial import DimError, Monomial
from linnet.dims.search import follows

Sign = Literal["zero", "at_least_zero", "not_zero"]
MAX_REWRITES = 64


@dataclass(frozen=True, slots=True)
class Choice:
    """`result` is the least (or the greatest) of `args`."""

    kind: Kind
    args: tuple[Dim, ...]
    result: Dim


class Store:
    """What is known; mutable while it is built.

    - `rules`: a symbol is that polynomial, in symbols without rules;
    - `products`: so is a monomial;
    - `lower`: a symbol is at least that number;
    - `bounds`, `equations`, `not_zero`: polynomials that are `>= 0`, `== 0`, `!= 0`;
    - `divisions`: the names of quotient and remainder of two polynomials, the second one positive;
    - `unspecified`: the name of a division or remainder by what may be less than 1;
    - `choices`: minima and maxima that are not decided;
    - `atoms`: canonical forms worked out before;
    - `waiting`: relations whose divisors were not known to be positive;
    - `absurd`: the relations contradict each other.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.rules: dict[Symbol, Dim] = {}
        self.products: dict[Monomial, Dim] = {}
        self.lower: dict[Symbol, int] = {}
        self.bounds: dict[Dim, None] = {}
        self.equations: dict[Dim, None] = {}
        self.not_zero: dict[Dim, None] = {}
        self.divisions: dict[tuple[Dim, Dim], tuple[Dim, Dim]] = {}
        self.unspecified: dict[tuple[Kind, Dim, Dim], Dim] = {}
        self.choices: list[Choice] = []
        self.waiting: list[tuple[Sign, Dim]] = []
        self.atoms: dict[Op, Dim] = {}
        self.absurd = False
        self.names = 0
        self.busy = False
        self.queue: deque[tuple[Sign, Dim]] = deque()
        self.shifted: dict[Dim, Dim] = {}

    def fork(self) -> Self:
        """A copy to add to; the budget is shared."""
        new = type(self)(self.budget)
        new.rules, new.products, new.lower = {**self.rules}, {**self.products}, {**self.lower}
        new.bounds, new.equations = {**self.bounds}, {**self.equations}
        new.not_zero, new.divisions = {**self.not_zero}, {**self.divisions}
        new.unspecified, new.choices = {**self.unspecified}, [*self.choices]
        new.atoms, new.waiting = {**self.atoms}, self.waiting
        new.absurd, new.names, new.shifted = self.absurd, self.names, {**self.shifted}
        return new

    def name(self, name: str) -> Symbol:
        self.budget.spend(20)
        self.names += 1
        return Symbol(f"/{name}", -self.names)  # no name a person can write

    def unknown(self, name: str, *, signed: bool = False) -> Dim:
        value = Dim.of(self.name(name))
        return value - Dim.of(self.name(name)) if signed else value

    def resolve(self, dim: Dim) -> Dim:
        """A polynomial over symbols after all rules; the same object if none applies."""
        if not dim.symbols.isdisjoint(self.rules):
            dim = dim.substitute(self.rules)
        for _ in range(MAX_REWRITES if self.products else 0):
            rewritten = self._rewritten(dim)
            if rewritten is None:
                break
            dim = rewritten
        return dim

    def _rewritten(self, dim: Dim) -> Dim | None:
        for monomial, coefficient in dim.terms.items():
            for lead, value in self.products.items():
                factor = polynomial.monomial_quotient(monomial, lead)
                if factor is not None:
                    return dim + Dim({factor: coefficient}) * (value - Dim({lead: 1}))
        return None

    def plain(self, dim: Dim) -> bool:
        """`dim >= 0` from signs and lower bounds alone."""
        terms = dim.terms.values()
        if all(c > 0 for c in terms):
            return True
        if not self.lower or all(c < 0 for c in terms):
            return False
        try:
            return all(c > 0 for c in self._shift(dim).terms.values())
        except DimError:
            return False

    def at_least_zero(self, dim: Dim) -> bool:
        """Whether `dim >= 0` is known."""
        if self.plain(dim):
            return True
        try:
            shifted = self._shift(dim)
            if shifted.constant is not None or not (self.bounds or self.equations):
                return False
            bounds = [self._shift(bound) for bound in self.bounds]
            for equation in self.equations:
                bounds += (self._shift(equation), -self._shift(equation))
            return follows(shifted, bounds, self.budget)
        except DimError:
            return False

    def _shift(self, dim: Dim) -> Dim:
        """The same with every symbol counted from its lower bound."""
        if dim not in self.shifted:
            step = {s: Dim.of(s) + self.lower[s] for s in dim.symbols if s in self.lower}
            self.shifted[dim] = dim.substitute(step)
        return self.shifted[dim]
