"""What a person could declare so that something becomes provable."""

from __future__ import annotations

from linnet.dims import polynomial
from linnet.dims.dim import ZERO, Dim, Op, mod
from linnet.dims.facts import Facts, Verdict
from linnet.dims.polynomial import DimError
from linnet.dims.relation import Relation

MAX_CANDIDATES = 8


def suggest(relation: Relation, facts: Facts) -> tuple[Relation, ...]:
    """The plainest relations that would prove this one if they were declared besides.

    `Heads / Shards * Shards == Heads` wants `Shards > 0` and `Heads % Shards == 0`; where no such
    declarations help, the relation itself in its plainest form. Empty where it is proved or
    can never hold.
    """
    if facts.prove(relation) is not Verdict.UNKNOWN:
        return ()
    try:
        wanted = _divisibility(relation, facts)
    except DimError:
        return (relation,)
    if _helps(wanted, relation, facts):
        for candidate in wanted:
            fewer = tuple(other for other in wanted if other != candidate)
            if _helps(fewer, relation, facts):
                wanted = fewer
        return wanted
    plain = _plain(relation)
    return (plain if _helps((plain,), relation, facts) else relation,)


def _divisibility(relation: Relation, facts: Facts) -> tuple[Relation, ...]:
    """For each division in it, a positive divisor and no remainder, unless that is known."""
    found: dict[Relation, None] = {}
    for op in _divisions(relation.left) + _divisions(relation.right):
        a, b = op.args
        for candidate in (Relation(b, ">", ZERO), Relation(mod(a, b), "==", ZERO)):
            if facts.prove(candidate) is Verdict.UNKNOWN:
                found[candidate] = None
    return tuple(found)[:MAX_CANDIDATES]


def _divisions(dim: Dim) -> list[Op]:
    """Innermost first."""
    found = []
    for op in sorted(dim.ops, key=lambda op: op.key):
        for arg in op.args:
            found += _divisions(arg)
        if op.kind == "floordiv" or op.kind == "mod":
            found.append(op)
    return found


def _helps(wanted: tuple[Relation, ...], relation: Relation, facts: Facts) -> bool:
    more = facts.assume(*wanted)
    return more.proves(relation) and not more.contradictory


def _plain(relation: Relation) -> Relation:
    """Without common terms and factors, nothing subtracted: `S - 1 >= 0` is `S >= 1`."""
    gap = relation.left - relation.right
    more = {monomial: c for monomial, c in gap.terms.items() if c > 0}
    less = {monomial: -c for monomial, c in gap.terms.items() if c < 0}
    left, right, _ = polynomial.cancel(more, less)
    return Relation(Dim(left), relation.op, Dim(right))
