"""Random programs: ONNX Runtime's exact run against the NumPy oracle."""

from __future__ import annotations

import numpy as np
import pytest

import linnet.onnx
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError

from ..ir.programs import reproducer, sample
from .support import as_program, difference

SEEDS = [
    *range(60),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(60, 1500)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_run_equals_the_oracle(seed: int) -> None:
    """Wherever the oracle has an answer; indices outside their axis have none, though the runtime
    may notice them where nothing is read."""
    given = sample(seed)
    f = given.function
    name = f.name.rpartition("::")[2]
    try:
        want = Evaluator({f.name: f}).run(f.name, given.inputs, given.sizes)
    except EvaluationError:
        return
    model = linnet.onnx.load_model(as_program(f), numerics="exact", threads=1)
    try:
        got = model.run_entry(name, given.inputs)
    except linnet.onnx.ExportError as error:
        assert "`erf` of f64" in str(error), reproducer(given)
        return
    except linnet.onnx.RunError as error:
        assert "out of data bounds" in str(error) or "invalid index" in str(error), reproducer(
            given
        )
        return
    for a, b in zip(got, want, strict=True):
        tolerance = 1e-2 if np.asarray(b).dtype.itemsize == 2 else 1e-5
        text = f"{reproducer(given)}\n{model.generated_source(name)}\n{a}\n{b}"
        assert difference(a, b) <= tolerance, text
