"""Requirements on inputs against what really happens when random programs run."""

from __future__ import annotations

import pytest

from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError
from linnet.passes.bounds import input_requirements, violations

from .programs import reproducer, sample


@pytest.mark.parametrize("seed", range(100))
def test_random_programs_are_never_refused_falsely(seed: int) -> None:
    """What is asked of a program that runs holds."""
    made = sample(seed)
    f = made.function
    found = violations(input_requirements({}, f), made.inputs, made.sizes)
    if not found:
        return
    with pytest.raises(EvaluationError):
        Evaluator({f.name: f}).run(f.name, made.inputs, made.sizes)
        raise AssertionError(f"{found}\n{reproducer(made)}")


def test_most_wrong_indices_are_found() -> None:
    found = missed = 0
    for made in map(sample, range(60)):
        f = made.function
        try:
            Evaluator({f.name: f}).run(f.name, made.inputs, made.sizes)
        except EvaluationError as error:
            if "outside an axis" in error.what:
                hit = violations(input_requirements({}, f), made.inputs, made.sizes)
                found, missed = (found + 1, missed) if hit else (found, missed + 1)
    assert found > 8 * missed
