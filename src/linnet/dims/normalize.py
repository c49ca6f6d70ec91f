"""Dimensions simplified under facts, for people and for inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.dims import polynomial
from linnet.dims.dim import ZERO, Atom, Dim, Op, Symbol, apply, floordiv, mod
from linnet.dims.relation import Relation, RelationOp

if TYPE_CHECKING:
    from linnet.dims.facts import Facts


def equalities(relations: tuple[Relation, ...]) -> dict[Symbol, Dim]:
    """What declared equalities say a symbol is, in terms of symbols none is declared for."""
    found: dict[Symbol, Dim] = {}
    for relation in relations:
        if relation.op != "==":
            continue
        left, right = relation.left.substitute(found), relation.right.substitute(found)
        for side, other in ((left, right), (right, left)):
            symbol = _bare(side)
            if symbol is not None and symbol not in other.symbols:
                found = {s: value.substitute({symbol: other}) for s, value in found.items()}
                found[symbol] = other
                break
    return found


def simplified(dim: Dim, facts: Facts) -> Dim:
    """`dim` with every division, remainder, minimum and maximum decided that the facts decide,
    and `b * (a / b)` written as `a` where `b` divides `a`."""

    def value(atom: Atom) -> Dim | None:
        return None if isinstance(atom, Symbol) else _op(atom, facts)

    return _fold(dim.replace_atoms(value), facts) if dim.ops else dim


def _bare(dim: Dim) -> Symbol | None:
    if len(dim.terms) == 1:
        [(monomial, coefficient)] = dim.terms.items()
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol):
            return monomial[0]
    return None


def _op(op: Op, facts: Facts) -> Dim:
    args = [simplified(arg, facts) for arg in op.args]
    if op.kind == "min" or op.kind == "max":
        sign: RelationOp = "<=" if op.kind == "min" else ">="
        kept: list[Dim] = []
        for arg in args:
            if not any(facts.proves(Relation(other, sign, arg)) for other in kept):
                kept = [o for o in kept if not facts.proves(Relation(arg, sign, o))] + [arg]
        return apply(op.kind, kept)
    a, b = args
    if not facts.proves(Relation(b, ">=", Dim.of(1))):
        return apply(op.kind, args)
    if op.kind == "mod":
        return _remainder(a, b, facts)
    a, b, _ = (Dim(part) for part in polynomial.cancel(a.terms, b.terms))
    quotient, rest = (Dim(part) for part in polynomial.divide(a.terms, b.terms))
    if rest == ZERO:
        return quotient
    return ZERO if _less(a, b, facts) else floordiv(a, b)


def _remainder(a: Dim, b: Dim, facts: Facts) -> Dim:
    a, b, shared = (Dim(part) for part in polynomial.cancel(a.terms, b.terms))
    return shared * _small_remainder(a, b, facts)


def _small_remainder(a: Dim, b: Dim, facts: Facts) -> Dim:
    if facts.proves(Relation(mod(a, b), "==", ZERO)):
        return ZERO
    return a if _less(a, b, facts) else mod(a, b)


def _less(a: Dim, b: Dim, facts: Facts) -> bool:
    return facts.proves(Relation(a, "<", b)) and facts.proves(Relation(a, ">=", ZERO))


def _fold(dim: Dim, facts: Facts) -> Dim:
    """`b * (a / b) = a - a % b`, where that is shorter."""
    for op in sorted(dim.ops, key=lambda op: op.key):
        if op.kind != "floordiv" or op not in dim.ops:
            continue
        a, b = op.args
        factor: dict[polynomial.Monomial, int] = {}
        rest: dict[polynomial.Monomial, int] = {}
        for monomial, coefficient in dim.terms.items():
            if monomial.count(op) == 1:
                factor[tuple(atom for atom in monomial if atom != op)] = coefficient
            else:
                rest[monomial] = coefficient
        if not factor or not facts.proves(Relation(b, ">=", Dim.of(1))):
            continue
        times, left = (Dim(part) for part in polynomial.divide(factor, b.terms))
        if times == ZERO:
            continue
        whole = a - _remainder(a, b, facts)
        folded = Dim({(op,): 1}) * left + times * whole + Dim(rest)
        if folded.weight < dim.weight:
            dim = folded
    return dim
