"""Random facts and queries, every verdict checked against brute force over small assignments.

    python tests/dims/fuzz.py [--queries 20000] [--seed 0]

Each expression is made twice: as a `Dim`, and as plain Python that knows nothing of normal forms.
A division by less than 1 has an arbitrary value in the latter, as the prover must assume.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from linnet.dims import (
    Dim,
    DimError,
    Facts,
    Relation,
    RelationOp,
    Symbol,
    Verdict,
    dmax,
    dmin,
    floordiv,
    mod,
)

OPS: tuple[RelationOp, ...] = get_args(RelationOp)
NAMES = ("A", "B", "C", "D")
SYMBOLS = tuple(Symbol(name, index) for index, name in enumerate(NAMES))
Value = Callable[..., int]


@dataclass(frozen=True)
class Expr:
    """One expression as a dimension and as Python source over the names."""

    dim: Dim
    source: str


@dataclass(frozen=True)
class Claim:
    relation: Relation
    source: str


@dataclass(frozen=True)
class Failure:
    facts: tuple[Claim, ...]
    query: Claim
    verdict: Verdict
    values: tuple[int, ...]

    def __str__(self) -> str:
        facts = ", ".join(str(fact.relation) for fact in self.facts)
        at = ", ".join(f"{name}={value}" for name, value in zip(NAMES, self.values, strict=False))
        return f"{self.verdict.name} but wrong at {at}: {self.query.relation} under {facts or '-'}"


def environment(salt: int) -> dict[str, object]:
    """`div` and `rem` for the Python source; by less than 1 they give some fixed odd number."""

    def odd(kind: int, a: int, b: int) -> int:
        return hash((salt, kind, a, b)) % 11 - 3

    return {
        "div": lambda a, b: a // b if b >= 1 else odd(1, a, b),
        "rem": lambda a, b: a % b if b >= 1 else odd(2, a, b),
    }


def random_expr(rng: random.Random, count: int, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.3:
            value = rng.choice((0, 1, 1, 2, 2, 3, 4))
            return Expr(Dim.of(value), str(value))
        index = rng.randrange(count)
        return Expr(Dim.of(SYMBOLS[index]), NAMES[index])
    left = random_expr(rng, count, depth - 1)
    right = random_expr(rng, count, depth - 1)
    a, b = left.source, right.source
    match rng.choice("++--***/%/%mM"):
        case "+":
            return Expr(left.dim + right.dim, f"({a} + {b})")
        case "-":
            return Expr(left.dim - right.dim, f"({a} - {b})")
        case "*":
            return Expr(left.dim * right.dim, f"({a} * {b})")
        case "/":
            return quotient(left, right, "div")
        case "%":
            return quotient(left, right, "rem")
        case "m":
            return Expr(dmin(left.dim, right.dim), f"min({a}, {b})")
        case _:
            return Expr(dmax(left.dim, right.dim), f"max({a}, {b})")


def quotient(a: Expr, b: Expr, name: str) -> Expr:
    made = floordiv(a.dim, b.dim) if name == "div" else mod(a.dim, b.dim)
    return Expr(made, f"{name}({a.source}, {b.source})")


def claim(left: Expr, op: RelationOp, right: Expr) -> Claim:
    return Claim(Relation(left.dim, op, right.dim), f"{left.source} {op} {right.source}")


def function(source: str, count: int, salt: int) -> Value:
    value: Value = eval(f"lambda {', '.join(NAMES[:count])}: {source}", environment(salt))
    return value


def number(value: int) -> Expr:
    return Expr(Dim.of(value), str(value))


def symbol(rng: random.Random, count: int) -> Expr:
    index = rng.randrange(count)
    return Expr(Dim.of(SYMBOLS[index]), NAMES[index])


def random_fact(rng: random.Random, count: int) -> tuple[Expr, Expr]:
    """Mostly of the forms `where` clauses have, sometimes anything."""
    one, other = symbol(rng, count), symbol(rng, count)
    match rng.randrange(8):
        case 0:
            divisor = rng.choice((number(2), number(3), number(4), other))
            return quotient(one, divisor, "rem"), number(0)
        case 1:
            return one, number(rng.choice((0, 1, 2)))
        case 2:
            return one, other
        case 3:
            return one, random_expr(rng, count, 2)
        case 4:
            divided = quotient(random_expr(rng, count, 1), random_expr(rng, count, 1), "div")
            return divided, number(rng.choice((0, 1, 2)))
        case _:
            return random_expr(rng, count, 2), random_expr(rng, count, rng.choice((0, 1, 2)))


def true_facts(rng: random.Random, count: int, salt: int) -> list[Claim]:
    """Facts that all hold at one hidden assignment, so that they do not contradict each other."""
    hidden = [rng.choice((0, 1, 1, 2, 2, 3, 4)) for _ in range(count)]
    facts = []
    for _ in range(rng.choice((0, 1, 2, 3, 4, 6))):
        left, right = random_fact(rng, count)
        candidates = [claim(left, op, right) for op in OPS]
        true = [c for c in candidates if function(c.source, count, salt)(*hidden)]
        weight = [4 if c.relation.op == "==" else 1 for c in true]
        facts.append(rng.choices(true, weight)[0])
    return facts


def mixed(rng: random.Random, count: int, facts: list[Claim]) -> Claim:
    """A query: random, or near to what the facts say."""
    if not facts or rng.random() < 0.5:
        pair = random_expr(rng, count, rng.choice((1, 2, 3))), random_expr(rng, count, 2)
        return claim(pair[0], rng.choice(OPS), pair[1])
    fact = rng.choice(facts)
    relation = fact.relation
    left, right = fact.source.rsplit(f" {relation.op} ", 1)
    extra = random_expr(rng, count, rng.choice((0, 0, 1)))
    a = Expr(relation.left, left)
    b = Expr(relation.right, right)
    match rng.randrange(4):
        case 0:
            a = Expr(a.dim * extra.dim, f"({a.source}) * ({extra.source})")
            b = Expr(b.dim * extra.dim, f"({b.source}) * ({extra.source})")
        case 1:
            a = Expr(a.dim + extra.dim, f"({a.source}) + ({extra.source})")
        case 2:
            a, b = quotient(a, extra, "div"), quotient(b, extra, "div")
        case _:
            pass
    return claim(a, rng.choice((relation.op, *OPS)), b)


def assignments(rng: random.Random, count: int) -> Iterator[tuple[int, ...]]:
    """Every small one, and some with larger numbers."""
    largest = {1: 40, 2: 12, 3: 6, 4: 4}[count]
    yield from itertools.product(range(largest + 1), repeat=count)
    for _ in range(40):
        yield tuple(
            rng.choice((0, 1, rng.randrange(20), rng.randrange(1000))) for _ in range(count)
        )


def run(queries: int, seed: int, each: int = 10) -> tuple[Counter[str], list[Failure]]:
    """Verdict counts, and every verdict that brute force contradicts."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    while counts.total() < queries:
        count = rng.choice((1, 2, 2, 3, 3, 4))
        salt = rng.randrange(1 << 30)
        try:
            claims = true_facts(rng, count, salt)
        except DimError:
            continue
        facts = Facts().assume(*(c.relation for c in claims))
        checks = [function(c.source, count, salt) for c in claims]
        space = assignments(rng, count)
        models = [v for v in space if all(check(*v) for check in checks)]
        for _ in range(each):
            query = mixed(rng, count, claims)
            verdict = facts.prove(query.relation)
            counts[verdict.name] += 1
            if verdict is Verdict.UNKNOWN:
                continue
            check = function(query.source, count, salt)
            wrong = [v for v in models if bool(check(*v)) is (verdict is Verdict.REFUTED)]
            if wrong:
                failures.append(Failure(tuple(claims), query, verdict, wrong[0]))
    return counts, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start = time.perf_counter()
    counts, failures = run(arguments.queries, arguments.seed)
    for failure in failures[:20]:
        print(failure)
    print(f"{dict(counts)} in {time.perf_counter() - start:.1f} s; {len(failures)} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
