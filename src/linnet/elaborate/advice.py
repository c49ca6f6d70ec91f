"""What to tell people about a relation that could not be proved."""

from __future__ import annotations

from linnet.dims import Dim, DimError, Facts, Relation, Verdict, mod


def describe_facts(facts: Facts) -> tuple[str, ...]:
    """A note that lists what is declared, for errors about what could not be proved."""
    if not facts.relations:
        return ()
    shown = ", ".join(map(str, facts.relations[:8]))
    more = len(facts.relations) - 8
    return (f"known: {shown}{f' and {more} more' if more > 0 else ''}",)


def where_help(facts: Facts, relation: Relation) -> str | None:
    """The clause that would prove `relation`; None when no clause can.

    A missing divisibility says more than the equation it would prove: `H % Heads == 0` rather
    than `H / Heads * Heads == H`.
    """
    if not (relation.left.symbols or relation.right.symbols):
        return None
    if facts.prove(relation) is Verdict.REFUTED:
        return None
    for clause in _divisibilities(relation):
        if facts.assume(clause).proves(relation):
            return f"add `where {clause}`"
    return f"add `where {relation}`"


def _divisibilities(relation: Relation) -> list[Relation]:
    found: dict[Relation, None] = {}
    for op in sorted(relation.left.ops | relation.right.ops, key=lambda op: op.key):
        if op.kind == "floordiv":
            try:
                found[Relation(mod(*op.args), "==", Dim.of(0))] = None
            except DimError:
                continue
    return list(found)[:8]
