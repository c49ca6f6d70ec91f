"""Random programs: the exact run against the NumPy oracle, as a step and as one program."""

from __future__ import annotations

import numpy as np
import pytest

import linnet.jax
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError

from ..ir.programs import reproducer, sample
from .support import as_program, difference, to_numpy

SEEDS = [
    *range(12),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 600)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_run_equals_the_oracle(seed: int) -> None:
    """Wherever the oracle has an answer; indices outside their axis have none."""
    given = sample(seed)
    f = given.function
    name = f.name.rpartition("::")[2]
    try:
        want = Evaluator({f.name: f}).run(f.name, given.inputs, given.sizes)
    except EvaluationError:
        return
    model = linnet.jax.load_source_model(as_program(f), numerics="exact")
    got = to_numpy(model.run_entry(name, given.inputs))
    for a, b in zip(got, want, strict=True):
        tolerance = 1e-2 if np.asarray(b).dtype.itemsize == 2 else 1e-5
        text = f"{reproducer(given)}\n{model.generated_source(name)}\n{a}\n{b}"
        assert difference(a, b) <= tolerance, text
