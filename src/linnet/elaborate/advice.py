"""What to tell people about a relation that could not be proved."""

from __future__ import annotations

from linnet.dims import Facts, Relation, suggest


def describe_facts(facts: Facts) -> tuple[str, ...]:
    """A note that lists what is declared, for errors about what could not be proved."""
    if not facts.relations:
        return ()
    shown = ", ".join(map(str, facts.relations[:8]))
    more = len(facts.relations) - 8
    return (f"known: {shown}{f' and {more} more' if more > 0 else ''}",)


def where_help(facts: Facts, relation: Relation) -> str | None:
    """The clauses that would prove `relation`; None when no clause can."""
    clauses = suggest(relation, facts)
    return f"add `where {', '.join(map(str, clauses))}`" if clauses else None
