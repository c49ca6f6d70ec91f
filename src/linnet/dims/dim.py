"""Symbolic dimensions: integer polynomials over symbols, divisions, remainders, min and max."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from linnet.dims import polynomial
from linnet.dims.polynomial import DimError, Monomial, Terms
from linnet.dims.render import render

MAX_WEIGHT = 1024
MAX_DEPTH = 24


@dataclass(frozen=True, slots=True)
class Symbol:
    """An unknown non-negative integer. `uid` tells two symbols of one name apart."""

    name: str
    uid: int

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.uid)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.uid, 0)


_uids = itertools.count()


def fresh_symbol(name: str) -> Symbol:
    """A symbol equal to no other."""
    return Symbol(name, next(_uids))


Kind = Literal["floordiv", "mod", "min", "max"]
_RANK: dict[Kind, int] = {"floordiv": 1, "mod": 2, "min": 3, "max": 4}


class Op:
    """An atom that is no polynomial: a floor division, a remainder, a minimum or a maximum.

    Made only by `floordiv`, `mod`, `dmin` and `dmax`, which fold what can be folded. `key` orders
    atoms by structure, an atom beside the first symbol in it.
    """

    __slots__ = ("_hash", "args", "depth", "key", "kind", "symbols", "weight")

    def __init__(self, kind: Kind, args: tuple[Dim, ...]) -> None:
        self.kind = kind
        self.args = args
        self.symbols: frozenset[Symbol] = frozenset().union(*(arg.symbols for arg in args))
        self.weight = 1 + sum(arg.weight for arg in args)
        self.depth = 1 + max(arg.depth for arg in args)
        if self.weight > MAX_WEIGHT or self.depth > MAX_DEPTH:
            raise DimError("dimension too large: too many divisions, remainders, min and max")
        first = min((symbol.uid for symbol in args[0].symbols), default=-1)
        keys = tuple(arg.key for arg in args)
        self.key: tuple[Any, ...] = (first, _RANK[kind], keys)
        self._hash = hash((kind, args))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Op):
            return NotImplemented
        return self._hash == other._hash and self.kind == other.kind and self.args == other.args

    def __hash__(self) -> int:
        return self._hash


Atom = Symbol | Op


class Dim:
    """An integer expression in normal form; immutable, and equal exactly to its own normal form.

    Arithmetic raises `DimError` past 128 terms, 32 factors in a term, 256 bits in a coefficient,
    or 1024 nodes or 24 levels of division, remainder, min and max.
    """

    __slots__ = ("_hash", "_symbols", "_weight", "terms")

    def __init__(self, terms: Terms) -> None:
        """From a polynomial without zero coefficients, which is kept, not copied."""
        self.terms = terms
        self._hash: int | None = None
        self._symbols: frozenset[Symbol] | None = None
        self._weight = 0

    @staticmethod
    def of(value: int | Symbol | Dim) -> Dim:
        if isinstance(value, Dim):
            return value
        if isinstance(value, int):
            return Dim(polynomial.checked({(): int(value)})) if value else ZERO
        return Dim({(value,): 1})

    @property
    def constant(self) -> int | None:
        """The value, when no atom is in it."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def symbols(self) -> frozenset[Symbol]:
        """Every symbol in it, also inside divisions and the like."""
        if self._symbols is None:
            found: set[Symbol] = set()
            for monomial in self.terms:
                for atom in monomial:
                    found.update((atom,) if isinstance(atom, Symbol) else atom.symbols)
            self._symbols = frozenset(found)
        return self._symbols

    @property
    def ops(self) -> frozenset[Op]:
        """The outermost divisions, remainders, minima and maxima."""
        return frozenset(atom for m in self.terms for atom in m if isinstance(atom, Op))

    @property
    def weight(self) -> int:
        """How many nodes it has, written out in full."""
        if not self._weight:
            atoms = (atom for monomial in self.terms for atom in monomial)
            inner = sum(atom.weight if isinstance(atom, Op) else 1 for atom in atoms)
            self._weight = 1 + len(self.terms) + inner
        return self._weight

    @property
    def depth(self) -> int:
        return max((op.depth for op in self.ops), default=0)

    @property
    def key(self) -> tuple[Any, ...]:
        """A structural order among dimensions, used to put operands of min and max in order."""
        monomials = sorted(self.terms, key=polynomial.monomial_order, reverse=True)
        return tuple((tuple(atom.key for atom in m), self.terms[m]) for m in monomials)

    def __add__(self, other: int | Symbol | Dim) -> Dim:
        return Dim(polynomial.add(self.terms, Dim.of(other).terms))

    def __sub__(self, other: int | Symbol | Dim) -> Dim:
        return Dim(polynomial.add(self.terms, Dim.of(other).terms, -1))

    def __mul__(self, other: int | Symbol | Dim) -> Dim:
        return Dim(polynomial.multiply(self.terms, Dim.of(other).terms))

    def __radd__(self, other: int | Symbol) -> Dim:
        return Dim.of(other) + self

    def __rsub__(self, other: int | Symbol) -> Dim:
        return Dim.of(other) - self

    def __rmul__(self, other: int | Symbol) -> Dim:
        return Dim.of(other) * self

    def __neg__(self) -> Dim:
        return Dim({monomial: -coefficient for monomial, coefficient in self.terms.items()})

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Dim):
            return NotImplemented
        return self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def replace_atoms(self, value: Callable[[Atom], Dim | None]) -> Dim:
        """The same polynomial over other atoms; `None` leaves an atom as it is."""
        kept: dict[Monomial, int] = {}
        changed = ZERO
        for monomial, coefficient in self.terms.items():
            values = [(atom, value(atom)) for atom in monomial]
            if all(new is None for _, new in values):
                kept[monomial] = coefficient
                continue
            product = Dim({tuple(atom for atom, new in values if new is None): coefficient})
            for _, new in values:
                if new is not None:
                    product = product * new
            changed = changed + product
        return Dim(kept) + changed if len(kept) < len(self.terms) else self

    def substitute(self, mapping: Mapping[Symbol, int | Symbol | Dim]) -> Dim:
        """Every symbol of `mapping` replaced at once, and the result brought to normal form."""
        if self.symbols.isdisjoint(mapping):
            return self

        def value(atom: Atom) -> Dim | None:
            if isinstance(atom, Symbol):
                return Dim.of(mapping[atom]) if atom in mapping else None
            if atom.symbols.isdisjoint(mapping):
                return None
            return apply(atom.kind, [arg.substitute(mapping) for arg in atom.args])

        return self.replace_atoms(value)

    def evaluate(self, mapping: Mapping[Symbol, int]) -> int:
        """The value; `DimError` names a symbol without one, or a divisor below 1."""
        total = 0
        for monomial, coefficient in self.terms.items():
            product = coefficient
            for atom in monomial:
                product *= _evaluate(atom, mapping)
            total += product
        return total

    def render(
        self,
        name: Callable[[Symbol], str] = str,
        *,
        floordiv: str = "/",
        minimum: str = "min",
        maximum: str = "max",
    ) -> str:
        """Linnet source for it. `floordiv="//"` makes it Python; the names of the two functions
        of two arguments can be given too."""
        return render(self, name, floordiv, {"min": minimum, "max": maximum})

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return f"Dim({self})"


ZERO = Dim({})
ONE = Dim({(): 1})


def floordiv(a: int | Symbol | Dim, b: int | Symbol | Dim) -> Dim:
    """`a / b` rounded down. Where `b` may be less than 1 its value is unspecified."""
    return _division("floordiv", Dim.of(a), Dim.of(b))


def mod(a: int | Symbol | Dim, b: int | Symbol | Dim) -> Dim:
    """`a - a / b * b`, in `0 .. b - 1`. Where `b` may be less than 1 its value is unspecified."""
    return _division("mod", Dim.of(a), Dim.of(b))


def dmin(a: int | Symbol | Dim, b: int | Symbol | Dim) -> Dim:
    return _choice("min", [Dim.of(a), Dim.of(b)])


def dmax(a: int | Symbol | Dim, b: int | Symbol | Dim) -> Dim:
    return _choice("max", [Dim.of(a), Dim.of(b)])


def apply(kind: Kind, args: list[Dim]) -> Dim:
    """The operation on already normal operands."""
    if kind == "floordiv" or kind == "mod":
        return _division(kind, args[0], args[1])
    return _choice(kind, args)


def is_at_least(dim: Dim, least: int) -> bool:
    """Whether `dim >= least` is plain from the signs alone: no facts, no search."""
    for monomial, coefficient in dim.terms.items():
        if monomial and (coefficient < 0 or not all(_never_negative(a) for a in monomial)):
            return False
    return dim.terms.get((), 0) >= least


def _never_negative(atom: Atom) -> bool:
    if isinstance(atom, Symbol):
        return True
    if atom.kind == "max":
        return any(is_at_least(arg, 0) for arg in atom.args)
    if atom.kind == "min":
        return all(is_at_least(arg, 0) for arg in atom.args)
    dividend, divisor = atom.args
    return is_at_least(divisor, 1) and (atom.kind == "mod" or is_at_least(dividend, 0))


def _division(kind: Kind, a: Dim, b: Dim) -> Dim:
    if not is_at_least(b, 1):
        return Dim({(Op(kind, (a, b)),): 1})
    quotient, rest = _take_multiples(a, b)
    if is_at_least(rest, 0) and is_at_least(b - rest, 1):
        return quotient if kind == "floordiv" else rest
    inner = _single_op(rest)
    if inner is not None and not is_at_least(inner.args[1], 1):
        inner = None
    if inner is not None and inner.kind == "mod" and is_at_least(b - inner.args[1], 0):
        return quotient if kind == "floordiv" else rest
    if kind == "mod":
        return Dim({(Op(kind, (rest, b)),): 1})
    if inner is not None and inner.kind == "floordiv":
        # (a / c) / b == a / (c * b)
        return quotient + _division(kind, inner.args[0], inner.args[1] * b)
    return quotient + Dim({(Op(kind, (rest, b)),): 1})


def _take_multiples(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `a == b * q + r`: whole multiples only, so that terms stay as written."""
    divisor = b.constant
    if divisor is None:
        quotient, rest = polynomial.divide(a.terms, b.terms)
        return (Dim(quotient), ZERO) if not rest else (ZERO, a)
    whole: dict[Monomial, int] = {}
    left: dict[Monomial, int] = {}
    for monomial, coefficient in a.terms.items():
        if not monomial or coefficient % divisor == 0:
            times, over = divmod(coefficient, divisor)
        else:
            times, over = 0, coefficient
        if times:
            whole[monomial] = times
        if over:
            left[monomial] = over
    return Dim(whole), Dim(left)


def _single_op(dim: Dim) -> Op | None:
    if len(dim.terms) == 1:
        [(monomial, coefficient)] = dim.terms.items()
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], Op):
            return monomial[0]
    return None


def _choice(kind: Kind, args: Iterable[Dim]) -> Dim:
    """Nested choices flattened, operands that another one always beats dropped, the rest sorted."""
    flat: list[Dim] = []
    for arg in args:
        inner = _single_op(arg)
        flat.extend(inner.args if inner is not None and inner.kind == kind else (arg,))
    kept: list[Dim] = []
    for arg in flat:
        if not any(_beats(kind, other, arg) for other in kept):
            kept = [other for other in kept if not _beats(kind, arg, other)] + [arg]
    if len(kept) == 1:
        return kept[0]
    kept.sort(key=lambda arg: (arg.constant is not None, arg.key))
    return Dim({(Op(kind, tuple(kept)),): 1})


def _beats(kind: Kind, a: Dim, b: Dim) -> bool:
    return is_at_least(b - a if kind == "min" else a - b, 0)


def _evaluate(atom: Atom, mapping: Mapping[Symbol, int]) -> int:
    if isinstance(atom, Symbol):
        if atom not in mapping:
            raise DimError(f"`{atom.name}` has no value")
        return mapping[atom]
    values = [arg.evaluate(mapping) for arg in atom.args]
    match atom.kind:
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "floordiv" | "mod":
            if values[1] < 1:
                raise DimError(f"`{atom.args[1]}` is {values[1]}, and a divisor is at least 1")
            return values[0] // values[1] if atom.kind == "floordiv" else values[0] % values[1]
