"""Integer polynomials as plain dicts: the arithmetic under every dimension.

A monomial is a tuple of atoms in ascending order of their `key`, an atom repeated for its power,
and `()` the monomial of the constant. A polynomial maps monomials to coefficients, none of them 0.
Everything that could grow is capped here; past a cap `DimError` is raised at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from operator import attrgetter
from typing import Any, Protocol

MAX_TERMS = 128
MAX_DEGREE = 32
MAX_BITS = 256


class DimError(ValueError):
    """A dimension that has no value, or is larger than the checker works with."""


class Atom(Protocol):
    """What a monomial is made of: hashable, and ordered by a structural `key`."""

    @property
    def key(self) -> tuple[Any, ...]: ...


Monomial = tuple[Any, ...]
Terms = Mapping[Monomial, int]

_key = attrgetter("key")


def monomial_product(a: Monomial, b: Monomial) -> Monomial:
    if not a:
        return b
    if not b:
        return a
    if len(a) + len(b) > MAX_DEGREE:
        raise DimError(f"dimension too large: a product of more than {MAX_DEGREE} factors")
    return tuple(sorted(a + b, key=_key))


def monomial_quotient(a: Monomial, b: Monomial) -> Monomial | None:
    """`a / b` when `b` divides `a`."""
    if not b:
        return a
    if len(b) > len(a):
        return None
    left = list(a)
    for atom in b:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def monomial_order(monomial: Monomial) -> tuple[int, list[tuple[Any, ...]]]:
    """A monomial order: by degree, then by the atoms. Division relies on it."""
    return len(monomial), [atom.key for atom in monomial]


def add(a: Terms, b: Terms, scale: int = 1) -> dict[Monomial, int]:
    """`a + scale * b`."""
    out = dict(a)
    for monomial, coefficient in b.items():
        total = out.get(monomial, 0) + scale * coefficient
        if total:
            out[monomial] = total
        else:
            out.pop(monomial, None)
    return checked(out)


def multiply(a: Terms, b: Terms) -> dict[Monomial, int]:
    if len(a) > len(b):
        a, b = b, a
    out: dict[Monomial, int] = {}
    for left, x in a.items():
        for right, y in b.items():
            product = monomial_product(left, right)
            out[product] = out.get(product, 0) + x * y
        if len(out) > 2 * MAX_TERMS:
            break
    return checked({monomial: c for monomial, c in out.items() if c})


def checked(terms: dict[Monomial, int]) -> dict[Monomial, int]:
    """The same polynomial, or `DimError` when it is larger than anything a model needs."""
    if len(terms) > MAX_TERMS:
        raise DimError(f"dimension too large: a sum of more than {MAX_TERMS} terms")
    for coefficient in terms.values():
        if coefficient.bit_length() > MAX_BITS:
            raise DimError(f"dimension too large: a number of more than {MAX_BITS} bits")
    return terms


def divide(a: Terms, b: Terms) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """`(q, r)` with `a = b * q + r`, as much taken out as the leading term of `b` allows.

    By a single positive term `c * m`, every multiple of `m` left in `r` has a coefficient in
    `0 .. c - 1`, so `r` is a normal form.
    """
    lead = max(b, key=monomial_order)
    c = b[lead]
    rest = [(monomial, k) for monomial, k in b.items() if monomial != lead]
    work = dict(a)
    quotient: dict[Monomial, int] = {}
    remainder: dict[Monomial, int] = {}
    while work:
        monomial = max(work, key=monomial_order) if rest else next(iter(work))
        k = work.pop(monomial)
        factor = monomial_quotient(monomial, lead)
        times = 0 if factor is None else k // c
        if k - times * c:
            remainder[monomial] = k - times * c
        if factor is None or not times:
            continue
        quotient[factor] = quotient.get(factor, 0) + times
        for other, coefficient in rest:
            product = monomial_product(factor, other)
            total = work.get(product, 0) - times * coefficient
            if total:
                work[product] = total
            else:
                work.pop(product, None)
        checked(work)
    return checked({m: k for m, k in quotient.items() if k}), checked(remainder)


def content(coefficients: Iterable[int]) -> int:
    """The greatest common divisor; 0 of nothing."""
    return gcd(*coefficients)


def common_monomial(monomials: Iterable[Monomial]) -> Monomial:
    """The largest monomial that divides all of them."""
    shared: list[Any] | None = None
    for monomial in monomials:
        if shared is None:
            shared = list(monomial)
        left = list(monomial)
        kept = []
        for atom in shared:
            if atom in left:
                left.remove(atom)
                kept.append(atom)
        shared = kept
        if not shared:
            return ()
    return tuple(shared or ())


def exact_quotient(a: Terms, monomial: Monomial, coefficient: int) -> dict[Monomial, int]:
    """`a / (coefficient * monomial)`, which divides every term."""
    if not monomial:
        return {m: c // coefficient for m, c in a.items()}
    quotients = ((monomial_quotient(m, monomial), c // coefficient) for m, c in a.items())
    return {m: c for m, c in quotients if m is not None}


def cancel(a: Terms, b: Terms) -> tuple[Terms, Terms, Terms]:
    """`a` and `b` without the largest term that divides all of both, and that term."""
    shared = common_monomial([*a, *b])
    common = content([*a.values(), *b.values()])
    if not a or (not shared and common == 1):
        return a, b, {(): 1}
    return (
        exact_quotient(a, shared, common),
        exact_quotient(b, shared, common),
        {shared: common},
    )
