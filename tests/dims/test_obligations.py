"""The table of obligations: proved, the near misses not, and both what the table says they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from linnet.dims import DimError, Facts, Relation, Symbol, Verdict

from .obligations import OBLIGATIONS, Obligation
from .text import Names

IDS = [row.what for row in OBLIGATIONS]


def facts(names: Names, given: str) -> Facts:
    return Facts().assume(*names.relations(given))


def given_for_miss(row: Obligation) -> str:
    return row.given if row.miss_given is None else row.miss_given


def test_the_table_is_large_enough_and_its_rows_are_named() -> None:
    assert len(OBLIGATIONS) >= 60
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("row", OBLIGATIONS, ids=IDS)
def test_proved(row: Obligation) -> None:
    names = Names()
    assert facts(names, row.given).prove(names.relation(row.proved)) is Verdict.PROVED


@pytest.mark.parametrize("row", OBLIGATIONS, ids=IDS)
def test_near_miss_is_not_proved(row: Obligation) -> None:
    names = Names()
    miss_facts = facts(names, given_for_miss(row))
    assert miss_facts.prove(names.relation(row.miss)) is not Verdict.PROVED


@pytest.mark.parametrize("row", OBLIGATIONS, ids=IDS)
def test_order_of_facts_does_not_matter(row: Obligation) -> None:
    names = Names()
    backwards = Facts().assume(*reversed(names.relations(row.given)))
    assert backwards.prove(names.relation(row.proved)) is Verdict.PROVED


@pytest.mark.parametrize("row", OBLIGATIONS, ids=IDS)
def test_one_fact_at_a_time(row: Obligation) -> None:
    names = Names()
    grown = Facts.EMPTY
    for relation in names.relations(row.given):
        grown = grown.assume(relation)
        grown.prove(names.relation(row.miss))
    assert grown.prove(names.relation(row.proved)) is Verdict.PROVED


@pytest.mark.parametrize("row", OBLIGATIONS, ids=IDS)
def test_near_miss_is_false_somewhere(row: Obligation) -> None:
    names = Names()
    claim = names.relation(row.miss)
    assert any(not claim.evaluate(v) for v in models(names.relations(given_for_miss(row)), claim))


@pytest.mark.parametrize("row", OBLIGATIONS, ids=IDS)
def test_obligation_is_true_at_small_assignments(row: Obligation) -> None:
    names = Names()
    claim = names.relation(row.proved)
    found = list(itertools.islice(models(names.relations(row.given), claim), 50))
    assert found and all(claim.evaluate(values) for values in found)


def models(given: tuple[Relation, ...], claim: Relation) -> Iterator[dict[Symbol, int]]:
    """Small assignments that satisfy what is given; a declared equality fixes its symbol."""
    symbols = claim.left.symbols | claim.right.symbols
    for relation in given:
        symbols |= relation.left.symbols | relation.right.symbols
    ordered = sorted(symbols, key=lambda symbol: symbol.uid)
    fixed = {
        symbol: relation.right
        for relation in given
        for symbol in ordered
        if relation.op == "==" and str(relation.left) == symbol.name
    }
    free = [symbol for symbol in ordered if symbol not in fixed]
    for values in itertools.islice(_values(len(free)), 400_000):
        assignment = dict(zip(free, values, strict=True))
        try:
            for symbol, value in fixed.items():
                assignment[symbol] = value.evaluate(assignment)
            if all(relation.evaluate(assignment) for relation in given):
                claim.evaluate(assignment)
                yield assignment
        except DimError:
            continue


def _values(count: int) -> Iterator[tuple[int, ...]]:
    """Mixed small numbers first, then every combination, then some large ones."""
    top = {1: 70, 2: 40, 3: 16, 4: 8, 5: 5}.get(count, 3)
    yield from itertools.product((4, 2, 1), repeat=min(count, 9)) if count < 10 else ()
    yield from itertools.product(range(top + 1), repeat=count)
    yield from itertools.product((10**15, 10**15 + 1), repeat=count)
