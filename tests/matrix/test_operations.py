"""Every operation of the table, in every dtype it takes, on every backend against the evaluator.

Quick runs take some dtypes of each row at one draw of sizes; `-m slow` takes all, at several.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from linnet.ir import OPS, Function, Program
from linnet.ir.evaluate import Evaluator
from linnet.types import DType

from . import draws
from .backends import BACKENDS, Job, one_of, refused, run, source_text
from .compare import NARROW, close, flat, near, units
from .rows import IN_BLOCKS, IN_LIBRARY, ROWS, entry, kinds_of

# The order of a sum is free; a runtime's own functions are a few units off.
SUMS = frozenset({"reduce", "contract", "cumsum", "for"})
UNITS = {"exp": 4, "log": 4, "sin": 4, "cos": 4, "tanh": 8, "erf": 16}
SEEDS = 4


def test_every_operation_has_a_case() -> None:
    cases = {kind for row in ROWS for kind in kinds_of(row)}
    assert cases | IN_BLOCKS | IN_LIBRARY == set(OPS)
    assert not cases & (IN_BLOCKS | IN_LIBRARY)


def allowed(row: str, got: Any, want: Any) -> bool:
    """One unit in the last place, but for sums, functions and what has to be equal."""
    kind, dtype = kinds_of(row)[0], str(np.asarray(want).dtype)
    if units(got, want) <= 1:
        return True
    if kind in SUMS:
        return close(got, want) and np.asarray(got).dtype == np.asarray(want).dtype
    if dtype in NARROW or kind not in UNITS:
        return False
    return units(got, want) <= UNITS[kind] or near(got, want)


def jobs(backend: str, rows: list[str], seed: int, all_dtypes: bool) -> list[Job]:
    made = []
    for row in rows:
        rng = np.random.default_rng([seed, list(ROWS).index(row)])
        dtypes = [d for d in ROWS[row][1] if not refused(backend, kinds_of(row), d)]
        if not all_dtypes and len(dtypes) > 1:
            dtypes = [d for k, d in enumerate(dtypes) if (k + list(ROWS).index(row)) % 4 == seed]
        f, program = entry_of(row, tuple(dtypes))
        size = draws.sizes(rng)
        made.append(Job((row, seed, size), program, draws.inputs(row, f, size, rng)))
    return made


@cache
def entry_of(row: str, dtypes: tuple[DType, ...]) -> tuple[Function, Program]:
    f = entry(row, dtypes)
    return f, Program("m", {f.name: replace(f, kind="entry")}, {})


def check(backend: str, given: list[Job]) -> None:
    for job, got in zip(given, run(backend, given), strict=True):
        assert not isinstance(got, Exception), (job.label, got, source_text(backend, job))
        row, _, size = job.label
        functions = job.program.functions
        want = list(flat(Evaluator(functions).run("m::run", job.inputs, size)))
        found = list(flat(got))
        assert len(found) == len(want)
        for k, (a, b) in enumerate(zip(found, want, strict=True)):
            assert allowed(row, a, b), (
                f"{job.label}, result {k}, {np.asarray(b).dtype}: {a} instead of {b}\n"
                f"{job.inputs}\n{source_text(backend, job)}"
            )


@pytest.mark.parametrize(
    ("backend", "half"), [one_of(name, half) for name in BACKENDS for half in range(2)]
)
def test_rows(backend: str, half: int) -> None:
    check(backend, jobs(backend, list(ROWS)[half::2], half, all_dtypes=False))


@pytest.mark.parametrize(
    ("backend", "seed", "part"),
    [one_of(name, seed, part, slow=True)
     for name in BACKENDS for seed in range(SEEDS) for part in range(3)],
)  # fmt: skip
def test_rows_in_all_dtypes(backend: str, seed: int, part: int) -> None:
    check(backend, jobs(backend, list(ROWS)[part::3], seed + 10, all_dtypes=True))
