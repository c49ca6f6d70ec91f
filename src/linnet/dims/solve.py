"""One equation for one unknown dimension."""

from __future__ import annotations

from linnet.dims import polynomial
from linnet.dims.dim import ZERO, Dim, Op, Symbol, floordiv, mod
from linnet.dims.facts import Facts, Verdict
from linnet.dims.polynomial import DimError, Monomial
from linnet.dims.relation import Relation


def solve(pattern: Dim, unknown: Symbol, target: Dim, facts: Facts) -> Dim | None:
    """The one value of `unknown` for which `pattern == target` under the facts.

    The pattern must be linear in the unknown, with a coefficient that is provably at least 1 and
    provably divides what it must. `None` where there is no such value, more than one, or it is
    provably negative; a value of unknown sign (`X - Batch`) is returned.
    """
    try:
        return _solve(pattern, unknown, target, facts)
    except DimError:
        return None


def _solve(pattern: Dim, unknown: Symbol, target: Dim, facts: Facts) -> Dim | None:
    split = _linear(pattern, unknown)
    if split is None or unknown in target.symbols:
        return None
    coefficient, rest = split
    if not facts.proves(Relation(coefficient, ">=", Dim.of(1))):
        return None
    value = _divided(target - rest, coefficient, facts)
    if value is None or facts.prove(Relation(value, ">=", ZERO)) is Verdict.REFUTED:
        return None
    return value


def _linear(pattern: Dim, unknown: Symbol) -> tuple[Dim, Dim] | None:
    """`(c, r)` with `pattern == c * unknown + r`, neither of them mentioning it."""
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in pattern.terms.items():
        if any(isinstance(atom, Op) and unknown in atom.symbols for atom in monomial):
            return None
        match monomial.count(unknown):
            case 0:
                rest[monomial] = coefficient
            case 1:
                factor[tuple(atom for atom in monomial if atom != unknown)] = coefficient
            case _:
                return None
    return (Dim(factor), Dim(rest)) if factor else None


def _divided(total: Dim, coefficient: Dim, facts: Facts) -> Dim | None:
    """`total / coefficient` where that is exact, as plainly as it can be written."""
    for form in dict.fromkeys((total, facts.normalize(total))):
        quotient, remainder = polynomial.divide(form.terms, coefficient.terms)
        if not remainder:
            return Dim(quotient)
    if facts.proves(Relation(mod(total, coefficient), "==", ZERO)):
        return facts.normalize(floordiv(total, coefficient))
    return None
