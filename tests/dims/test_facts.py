"""What facts mean, beyond the table of obligations: the three answers, simplifying, solving."""

from __future__ import annotations

import random

import pytest
from tests.patience import patient

from linnet.dims import (
    Dim,
    DimError,
    Facts,
    Relation,
    Symbol,
    Verdict,
    fresh_symbol,
    solve,
    suggest,
)

from .fuzz import SYMBOLS, random_expr, true_facts
from .obligations import ATTENTION, DELTA
from .text import Names

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


def verdict(given: str, claim: str) -> Verdict:
    names = Names()
    return Facts().assume(*names.relations(given)).prove(names.relation(claim))


@pytest.mark.parametrize(
    ("given", "claim", "expected"),
    [
        ("", "A >= 0", PROVED),
        ("", "A < 0", REFUTED),
        ("", "A + 1 != 0", PROVED),
        ("", "A == A + 1", REFUTED),
        ("", "2 * A == 2 * B + 1", REFUTED),
        ("", "A == B", UNKNOWN),
        ("A > B", "A == B", REFUTED),
        ("A > B", "B >= A", REFUTED),
        ("A != B", "A == B", REFUTED),
        ("A != B", "2 * A == 2 * B", REFUTED),
        ("A != B", "A != B", PROVED),
        ("A * C == B", "B == C * A", PROVED),
        ("A * B == C * D", "A * B * E == E * D * C", PROVED),
        ("A * B == 6", "A >= 1", PROVED),
        ("A + B == 0", "A == 0", PROVED),
        ("A * B == 0, A > 0", "B == 0", PROVED),
        ("N == 4", "N / 3 == 1", PROVED),
        ("N % 2 == 1", "N >= 1", PROVED),
        ("N % 2 == 1", "(N + 1) % 2 == 0", PROVED),
        ("N % 2 == 1", "N % 2 == 0", REFUTED),
        ("A < 3, B < 3", "A + B <= 4", PROVED),
        ("A < 3, B < 3", "A + B <= 3", UNKNOWN),
        ("A <= B, B <= A + 1, B != A", "B == A + 1", PROVED),
    ],
)
def test_answers(given: str, claim: str, expected: Verdict) -> None:
    assert verdict(given, claim) is expected


@pytest.mark.parametrize(
    ("given", "claim"),
    [
        ("", "A / B <= A"),
        ("", "A % B >= 0"),
        ("", "A % B < B"),
        ("", "A / B * B + A % B == A"),
        ("A % B == 0", "A / B * B == A"),
        ("A / B > 0", "B > 0"),
        ("A / B > 0", "A > 0"),
        ("A >= B", "A / (A - B) >= 0"),
        ("", "0 / A == 0"),
        ("", "A / A == 1"),
        ("", "A / 0 == 0"),
        ("", "A / 0 != 0"),
    ],
)
def test_nothing_follows_about_a_division_by_what_may_be_zero(given: str, claim: str) -> None:
    assert verdict(given, claim) is UNKNOWN


def test_a_division_by_what_may_be_zero_is_still_one_number() -> None:
    assert verdict("", "A / B == A / B") is PROVED
    assert verdict("A / B == C, C == D", "A / B + E == D + E") is PROVED
    assert verdict("B == C", "A / B == A / C") is PROVED
    assert verdict("A / B > 3", "A / B > 2") is PROVED


def test_a_divisor_may_be_declared_positive_after_its_use() -> None:
    assert verdict("A % B == 0, B > 0", "A / B * B == A") is PROVED
    assert verdict("A % (B / C) == 0, B / C > 0, C > 0", "A / (B / C) * (B / C) == A") is PROVED
    names = Names()
    early = Facts().assume(*names.relations("A % B == 0"))
    claim = names.relation("A / B * B == A")
    assert early.prove(claim) is UNKNOWN
    assert early.assume(*names.relations("B > 0")).prove(claim) is PROVED


def test_contradictory_facts_crash_nothing() -> None:
    for given in ("A < A", "A > B, B > A", "0 == 1", "A * A == -1", "2 * A == 3", "A % 2 == 5"):
        names = Names()
        facts = Facts().assume(*names.relations(given))
        for claim in ("A == 7", "A >= 7", "A != A", "min(A, B) > A / (B + 1)"):
            facts.prove(names.relation(claim))
            facts.normalize(names.relation(claim).left)


def test_facts_are_immutable_and_hold_each_relation_once() -> None:
    names = Names()
    one = names.relation("A > 0")
    base = Facts.EMPTY
    more = base.assume(one, one)
    assert base.relations == () and more.relations == (one,)
    assert more.assume(one) is more
    assert base.prove(one) is UNKNOWN and more.prove(one) is PROVED


def test_equal() -> None:
    names = Names()
    facts = Facts().assume(*names.relations("H == N * D"))
    h, nd, n = names.dim("H"), names.dim("N * D"), names.dim("N")
    assert facts.equal(h, nd) is PROVED and facts.proves_equal(h, nd)
    assert facts.equal(h, n) is UNKNOWN and not facts.proves_equal(h, n)
    assert facts.equal(h, h + 1) is REFUTED and facts.proves(Relation(h, "<", nd + 1))


def test_an_answer_does_not_depend_on_the_questions_before() -> None:
    names = Names()
    relations = names.relations(ATTENTION)
    claims = [
        names.relation(text)
        for text in (
            "HeadDim / 4 * 4 == HeadDim",
            "HeadDim / 4 <= HeadDim",
            "Heads / 3 <= Heads",
            "min(Heads, KvHeads) == KvHeads",
            "HeadDim / 6 * 6 + HeadDim % 6 == HeadDim",
        )
    ]
    alone = [Facts(relations).prove(claim) for claim in claims]
    forward, backward = Facts(relations), Facts(relations)
    assert [forward.prove(claim) for claim in claims] == alone
    assert [backward.prove(claim) for claim in claims[::-1]] == alone[::-1]


def test_relations_substitute_evaluate_and_print() -> None:
    names = Names()
    relation = names.relation("A % B == 0")
    a, b = names.symbol("A"), names.symbol("B")
    assert str(relation) == "A % B == 0"
    assert relation.evaluate({a: 6, b: 3}) and not relation.evaluate({a: 6, b: 4})
    assert str(relation.substitute({b: 2})) == "A % 2 == 0"
    with pytest.raises(DimError):
        relation.evaluate({a: 6, b: 0})
    for text, holds in (
        ("A<B", True),
        ("A>B", False),
        ("A<=B", True),
        ("A>=B", False),
        ("A!=B", True),
    ):
        assert names.relation(text).evaluate({a: 1, b: 2}) is holds


@pytest.mark.parametrize(
    ("given", "text", "simple"),
    [
        (ATTENTION, "Heads / Shards * Shards * HeadDim", "Heads * HeadDim"),
        (ATTENTION, "B * (KvHeads / Shards) * HeadDim * Shards", "B * KvHeads * HeadDim"),
        (ATTENTION, "Heads % KvHeads", "0"),
        (ATTENTION, "min(Heads, KvHeads)", "KvHeads"),
        (ATTENTION, "Heads / Shards * HeadDim", "Heads / Shards * HeadDim"),
        (DELTA, "Conv - 2 * KeyHeads * KeyDim", "ValueHeads * ValueDim"),
        ("Size > 0", "N / Size * Size + N % Size", "N"),
        ("Size > 0", "(N * Size + 1) / Size", "(N * Size + 1) / Size"),
        ("A < B", "A / B", "0"),
        ("A < B", "A % B", "A"),
        ("B > 0", "A * B / B", "A"),
        ("", "A * B / B", "A * B / B"),
        ("N == 4", "N * D", "4 * D"),
        ("A == B, B == C + 1", "A", "C + 1"),
        ("A == A", "A", "A"),
    ],
)
def test_normalize(given: str, text: str, simple: str) -> None:
    names = Names()
    facts = Facts().assume(*names.relations(given))
    assert facts.normalize(names.dim(text)) == names.dim(simple)


def test_normalize_keeps_the_value() -> None:
    rng = random.Random(1)
    for _ in range(60):
        claims = true_facts(rng, 3, salt=0)
        facts = Facts().assume(*(claim.relation for claim in claims))
        dim = random_expr(rng, 3, 3).dim
        simple = facts.normalize(dim)
        for values in ((a, b, c) for a in range(5) for b in range(5) for c in range(5)):
            mapping = dict(zip(SYMBOLS, values, strict=False))
            try:
                if all(relation.evaluate(mapping) for relation in facts.relations):
                    assert simple.evaluate(mapping) == dim.evaluate(mapping)
            except DimError:
                continue


@pytest.mark.parametrize(
    ("given", "pattern", "target", "value"),
    [
        ("", "U", "A * B", "A * B"),
        ("", "P + U", "P + Batch", "Batch"),
        ("", "U + Batch", "X", "X - Batch"),
        ("HeadDim > 0", "U * HeadDim", "Heads / Shards * HeadDim", "Heads / Shards"),
        ("Heads > 0, H % Heads == 0", "Heads * U", "H", "H / Heads"),
        ("Heads > 0, H == Heads * D", "Heads * U", "H", "D"),
        ("", "2 * U", "2 * Inner", "Inner"),
        ("", "2 * U", "Inner", None),
        ("Inner % 2 == 0", "2 * U", "Inner", "Inner / 2"),
        ("", "2 * U + 1", "2 * N + 3", "N + 1"),
        ("", "Heads * U", "Heads * D", None),
        ("", "U * U", "N * N", None),
        ("", "U / 2", "N", None),
        ("", "U + 1", "0", None),
        ("", "U - 1", "W - 1", "W"),
        ("", "N + 1", "N + 1", None),
        ("", "U + 1", "U + 1", None),
        ("Shards > 0", "Shards * U", "Shards * V", "V"),
        ("Shards > 0, Vocab % Shards == 0", "B * S * Shards * U", "B * S * Vocab", None),
        (
            "Shards > 0, Vocab % Shards == 0, B > 0, S > 0",
            "B * S * Shards * U",
            "B * S * Vocab",
            "Vocab / Shards",
        ),
    ],
)
def test_solve(given: str, pattern: str, target: str, value: str | None) -> None:
    names = Names()
    facts = Facts().assume(*names.relations(given))
    found = solve(names.dim(pattern), names.symbol("U"), names.dim(target), facts)
    assert found == (None if value is None else names.dim(value))


def test_what_solve_returns_is_a_solution() -> None:
    rng = random.Random(5)
    unknown = fresh_symbol("U")
    solved = 0
    for _ in range(150):
        claims = true_facts(rng, 3, salt=0)
        facts = Facts().assume(*(claim.relation for claim in claims))
        factor, rest, target = (random_expr(rng, 3, depth).dim for depth in (1, 1, 2))
        pattern = factor * Dim.of(unknown) + rest
        if rng.random() < 0.5:
            target = target * factor + rest
        value = solve(pattern, unknown, target, facts)
        if value is None:
            continue
        solved += 1
        for values in ((a, b, c) for a in range(5) for b in range(5) for c in range(5)):
            mapping = dict(zip(SYMBOLS, values, strict=False))
            try:
                if all(relation.evaluate(mapping) for relation in facts.relations):
                    whole = {**mapping, unknown: value.evaluate(mapping)}
                    assert pattern.evaluate(whole) == target.evaluate(mapping)
            except DimError:
                continue
    assert solved > 20


@pytest.mark.parametrize(
    ("given", "claim", "suggested"),
    [
        ("", "Heads / Shards * Shards == Heads", "Shards > 0, Heads % Shards == 0"),
        ("Shards > 0", "Heads / Shards * Shards == Heads", "Heads % Shards == 0"),
        ("", "B * S * H == B * S * Heads * (H / Heads)", "Heads > 0, H % Heads == 0"),
        ("", "D / 2 + D / 2 == D", "D % 2 == 0"),
        ("", "A / B <= A", "B > 0"),
        ("", "B * S * H == B * S * Heads * D", "H == Heads * D"),
        ("", "S - 1 >= 0", "S >= 1"),
        ("", "Start + N - 1 < MaxSeq", "Start + N < MaxSeq + 1"),
        ("", "A * C < B * C", "A * C < C * B"),
        ("", "A == B", "A == B"),
        ("", "A == A", ""),
        ("", "A == A + 1", ""),
    ],
)
def test_suggest(given: str, claim: str, suggested: str) -> None:
    names = Names()
    relation = names.relation(claim)
    facts = Facts().assume(*names.relations(given))
    found = suggest(relation, facts)
    assert ", ".join(map(str, found)) == suggested
    if found:
        assert facts.assume(*found).prove(relation) is PROVED


def test_contradictory() -> None:
    names = Names()
    assert Facts().assume(*names.relations("A > 0, A < 1")).contradictory
    assert not Facts().assume(*names.relations("A > 0, A < 2")).contradictory


def many(count: int) -> list[Symbol]:
    return [fresh_symbol(f"s{index}") for index in range(count)]


def test_many_facts_and_hard_questions_end() -> None:
    rng = random.Random(3)
    symbols = [Dim.of(symbol) for symbol in many(40)]
    ops = ("<=", "<", "!=", ">=", "==")
    relations = []
    for _ in range(300):
        a, b, c, d = rng.sample(symbols, 4)
        op = rng.choice(ops)
        relations.append(Relation(a * b, op, c * d + rng.randrange(3)))  # type: ignore[arg-type]
    with patient():
        facts = Facts().assume(*relations)
        for _ in range(20):
            a, b, c, d = rng.sample(symbols, 4)
            facts.prove(Relation(a * b * c, ">=", d * a + b))


def test_large_dimensions_are_answered_unknown() -> None:
    symbols = [Dim.of(symbol) for symbol in many(100)]
    total = sum(symbols, Dim.of(0))
    assert Facts.EMPTY.prove(Relation(total, ">=", -total)) is PROVED
    other = sum((Dim.of(symbol) for symbol in many(100)), Dim.of(0))
    assert Facts.EMPTY.prove(Relation(total, ">=", other)) is UNKNOWN


def test_questions_are_fast_enough_for_a_whole_check() -> None:
    names = Names()
    base = Facts().assume(*names.relations(ATTENTION), *names.relations("Vocab % Shards == 0"))
    claims = [
        names.relation(text)
        for text in (
            "B * S * (Heads / Shards * HeadDim) == B * S * (Heads / Shards) * HeadDim",
            "Heads / Shards * Shards == Heads",
            "KvHeads / Shards > 0",
            "HeadDim % 2 == 0",
            "P <= P + Batch",
            "S - 1 >= 0",
            "B * S * (Shards * (Vocab / Shards)) == B * S * Vocab",
            "HeadDim - HeadDim / 2 == HeadDim / 2",
            "HeadDim / 4 <= HeadDim",
            "H == In",
            "B == 1",
        )
    ]
    with patient():
        for index in range(100):
            facts = base.assume(names.relation("S > 0"), names.relation(f"P{index} > 0"))
            for _ in range(20):
                for claim in claims:
                    facts.prove(claim)
