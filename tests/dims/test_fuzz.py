"""Random facts and queries against brute force; `fuzz.py` runs it at any size."""

from __future__ import annotations

import pytest

from .fuzz import run


def check(queries: int, seed: int) -> None:
    counts, failures = run(queries, seed)
    assert not failures, "\n".join(map(str, failures[:5]))
    assert counts["PROVED"] > queries // 10 and counts["REFUTED"] > queries // 20


def test_no_verdict_is_wrong_in_a_sample() -> None:
    check(500, seed=1)


@pytest.mark.slow
def test_no_verdict_is_wrong() -> None:
    check(20_000, seed=2)
