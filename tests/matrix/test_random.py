"""Random small programs on every backend against the evaluator.

Wherever the evaluator has an answer. An index outside its axis and a division by zero have none,
though a backend may not notice them, or notice them although nothing is made of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError

from ..ir.programs import Sample, reproducer, sample
from .backends import BACKENDS, Job, limits, one_of, run, source_text
from .compare import NARROW, difference

CHUNK = 12
# Of quick and of all chunks; what has to be compiled for each program runs fewer.
QUICK = {"torch": 4, "jax_source": 1, "jax_model": 0, "onnx_model": 4, "native": 3}
ALL = {"torch": 100, "jax_source": 25, "jax_model": 12, "onnx_model": 100, "native": 60}
NOT_THERE = ("bounds", "range", "outside", "invalid index", "division by zero",
             "ZeroDivisionError")  # fmt: skip


@cache
def answered(seed: int) -> tuple[Sample, tuple[Any, ...]] | None:
    """A program and its results; None where it has none."""
    given = sample(seed)
    f = given.function
    try:
        return given, Evaluator({f.name: f}).run(f.name, given.inputs, given.sizes)
    except EvaluationError:
        return None


def job_of(given: Sample) -> Job:
    f = given.function
    module, _, name = f.name.rpartition("::")
    program = Program(module, {f.name: replace(f, kind="entry")}, {})
    sizes = {} if given.inputs else given.sizes
    return Job(given.seed, program, given.inputs, name, sizes)


@pytest.mark.parametrize(
    ("backend", "chunk"),
    [one_of(name, k, slow=k >= QUICK[name]) for name in BACKENDS for k in range(ALL[name])],
)
def test_random_programs(backend: str, chunk: int) -> None:
    found = [answered(seed) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK)]
    known = [each for each in found if each is not None]
    jobs = [job_of(given) for given, _ in known]
    for (given, want), job, got in zip(known, jobs, run(backend, jobs), strict=True):
        if isinstance(got, Exception):
            said = str(got)
            assert any(word in said for word in NOT_THERE) or any(
                limit.what in said for limit in limits(backend)
            ), f"{got!r}\n{reproducer(given)}\n{source_text(backend, job)}"
            continue
        for a, b in zip(got, want, strict=True):
            tolerance = 1e-2 if str(np.asarray(b).dtype) in NARROW else 1e-5
            assert difference(a, b) <= tolerance, (
                f"{a} instead of {b}\n{reproducer(given)}\n{source_text(backend, job)}"
            )
