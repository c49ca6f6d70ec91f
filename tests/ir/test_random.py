"""Random programs: well formed, and the same whichever way they are copied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim
from linnet.ir import OPS, Function
from linnet.ir.evaluate import Evaluator
from linnet.ir.printer import print_function
from linnet.ir.rewrite import Rewriter, drop_dead
from linnet.ir.semantics import EvaluationError
from linnet.ir.verify import verify
from linnet.ir.walk import walk
from linnet.types import Subst

from .programs import M, N, Sample, reproducer, sample

SEEDS = [
    *range(120),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(120, 2000)),
]


def outcome(made: Function, given: Sample, sizes: dict[str, int]) -> Any:
    """The result, or the error's sentence."""
    try:
        return Evaluator({made.name: made}).run(made.name, given.inputs, sizes)
    except EvaluationError as error:
        return error.what


def same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return bool(np.array_equal(a, b)) if type(a) is type(b) else False
    return len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_mean_the_same(seed: int) -> None:
    given = sample(seed)
    f = given.function
    verify(f, {f.name: f})
    expected = outcome(f, given, given.sizes)
    copy = Rewriter().function(f)
    assert print_function(copy) == print_function(f)
    numbers = Subst({symbol: Dim.of(given.sizes[symbol.name]) for symbol in (N, M)})
    bound = replace(Rewriter(subst=numbers).function(f), generics=())
    for made, sizes in ((copy, given.sizes), (bound, {})):
        verify(made, {made.name: made})
        assert same(outcome(made, given, sizes), expected), reproducer(given)
    if not isinstance(expected, str):  # what is dropped may have been what failed
        smaller = drop_dead(f)
        verify(smaller, {f.name: smaller})
        assert same(outcome(smaller, given, given.sizes), expected), reproducer(given)


def test_samples_are_varied_and_deterministic() -> None:
    kinds = {op.kind for seed in range(120) for op in walk(sample(seed).function)}
    members = {"param", "state_read", "state_write", "match_sub", "for_subs", "call", "native"}
    seldom = {"struct", "struct_get", "enum", "match_enum", "log", "rsqrt", "cos"}
    assert set(OPS) - kinds <= members | seldom
    ran = [not isinstance(outcome(s.function, s, s.sizes), str) for s in map(sample, range(120))]
    assert 0.3 < sum(ran) / len(ran) < 0.95
    assert print_function(sample(7).function) == print_function(sample(7).function)
