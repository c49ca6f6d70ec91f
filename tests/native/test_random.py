"""Random programs: machine code against the NumPy oracle."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError
from linnet.native import RunError
from linnet.native.runtime.load import load

from ..ir.programs import reproducer, sample
from .support import QUICK, Run, as_program, difference, run_all

CHUNK = 40
CHUNKS = [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 25))]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_exact_run_equals_the_oracle(chunk: int) -> None:
    """Wherever the oracle has an answer; where it has none the run may have one or fail."""
    compare(range(chunk * CHUNK, (chunk + 1) * CHUNK), QUICK)


def compare(seeds: range, flags: tuple[str, ...]) -> None:
    given = [sample(seed) for seed in seeds]
    runs = []
    for each in given:
        name = each.function.name.rpartition("::")[2]
        model = load(as_program(each.function), numerics="exact")
        runs.append(Run(model, name, each.inputs, each.sizes if not each.inputs else {}))
    for each, run, got in zip(given, runs, run_all(runs, flags), strict=True):
        f = each.function
        try:
            want = Evaluator({f.name: f}).run(f.name, each.inputs, each.sizes)
        except EvaluationError:
            continue
        text = f"{reproducer(each)}\n{run.generated().text}\n{got}\n{want}"
        if isinstance(got, RunError):
            assert "outside" in str(got), text
            continue
        assert not isinstance(got, Exception), text
        for a, b in zip(got, want, strict=True):
            tolerance = 1e-2 if np.asarray(b).dtype.itemsize == 2 else 1e-5
            assert difference(a, b) <= tolerance, text
