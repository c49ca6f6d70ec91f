"""Every op of the standard library on every backend: bodies exactly, kernels closely, against the
evaluator's run of the body. Sizes are random, 0 and 1 among them.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError
from linnet.passes import NativeChoice, NativeQuery, bind, lower

from . import cases as text_cases
from .backends import BACKENDS, Job, one_of, run, source_text
from .compare import NARROW, difference, flat, units
from .kernels import CASES
from .library import call, entry_name, library, names, sums

EXACT = {"f32": 1e-5, "bf16": 2e-2, "f16": 4e-3}
FAST = {"f32": 2e-4, "bf16": 2e-2, "f16": 4e-3}
F32_ROUNDINGS = 16 * float(np.finfo(np.float32).eps)
DTYPES = ("f32", "bf16", "f16")
SEEDS = 6


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return library(tmp_path_factory.mktemp("library"))


def wanted(program: Program, job: Job) -> Any:
    """The body's result; None where it has none."""
    try:
        return Evaluator(program).run(f"{program.root}::{job.entry}", job.inputs, job.generics)
    except EvaluationError:
        return None


def drawn(program: Program, seed: int, numerics: str, part: tuple[int, int] = (0, 1)) -> list[Job]:
    """A call of each function, or of every so-manieth."""
    made = []
    for number, name in enumerate(names(program)[part[0] :: part[1]]):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        dtype = DTYPES[(seed + number) % len(DTYPES)]
        given = call(program.functions[name], rng, dtype)
        label = (name, numerics, dtype, seed, given.sizes)
        made.append(
            Job(label, program, given.inputs, entry_name(name), given.generics, numerics, False)
        )
    return made


def complaint(got: Any, want: Any, numerics: str, dtype: str, free: bool) -> str | None:
    """What is wrong with a result; `free`: the order of its sums is."""
    gap, last = difference(got, want), units(got, want)
    if gap > (EXACT if numerics == "exact" else FAST)[dtype]:
        return f"off by {gap}"
    narrow = str(np.asarray(want).dtype) in NARROW
    if numerics == "exact" and narrow and not free and last > 1:
        wide = np.abs(np.asarray(got).astype(np.float64) - np.asarray(want).astype(np.float64))
        if wide.max(initial=0.0) > F32_ROUNDINGS:  # f32 inside that cancelled
            return f"off by {last} units in the last place"
    return None


def compare(backend: str, jobs: list[Job], frees: list[bool]) -> None:
    wants = [wanted(job.program, job) for job in jobs]
    for job, free, got, want in zip(jobs, frees, run(backend, jobs), wants, strict=True):
        if want is None:
            continue
        assert not isinstance(got, Exception), (job.label, got, source_text(backend, job))
        _, numerics, dtype, *_ = job.label
        for k, (a, b) in enumerate(zip(flat(got), flat(want), strict=True)):
            wrong = complaint(a, b, numerics, dtype, free)
            assert wrong is None, (
                f"{job.label}, result {k} {wrong}: {a} instead of {b}\n{job.inputs}\n"
                f"{source_text(backend, job)}"
            )


@cache
def _free(program_id: int, name: str) -> bool:
    return sums(_PROGRAMS[program_id], name)


_PROGRAMS: dict[int, Program] = {}


def frees(program: Program, jobs: list[Job]) -> list[bool]:
    _PROGRAMS[id(program)] = program
    return [_free(id(program), job.label[0]) for job in jobs]


# JAX compiles each call by itself: its two ways share the ops between them.
QUICK = [
    ("torch", "exact", (0, 1)), ("torch", "fast", (0, 1)),
    ("onnx_model", "exact", (0, 1)), ("onnx_model", "fast", (0, 1)),
    ("native", "exact", (0, 1)), ("native", "fast", (0, 1)),
    ("jax_source", "exact", (0, 2)), ("jax_model", "exact", (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("backend", "numerics", "part"), [one_of(*each) for each in QUICK])
def test_ops(program: Program, backend: str, numerics: str, part: tuple[int, int]) -> None:
    jobs = drawn(program, 0, numerics, part)
    compare(backend, jobs, frees(program, jobs))


@pytest.mark.parametrize(
    ("backend", "numerics", "seed"),
    [one_of(b, n, seed, slow=True)
     for b in BACKENDS for n in ("exact", "equivalent", "fast") for seed in range(1, SEEDS)],
)  # fmt: skip
def test_ops_at_many_sizes(program: Program, backend: str, numerics: str, seed: int) -> None:
    jobs = drawn(program, seed, numerics)
    compare(backend, jobs, frees(program, jobs))


# --- calls that reach kernels ---------------------------------------------------------------------


Programs = dict[str, Program]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """All cases of each dtype in one program."""
    folder = tmp_path_factory.mktemp("kernels")
    return {d: text_cases.together(folder, cases_in(d), d) for d in DTYPES}


def cases_in(dtype: str) -> list[text_cases.Case]:
    return [case for case in CASES if dtype in case.dtypes]


def kernel_jobs(programs: Programs, dtype: str, numerics: str, every: bool) -> list[Job]:
    """All cases in a dtype; each at its first sizes, or at all of them."""
    chosen, program = cases_in(dtype), programs[dtype]
    made = []
    for number, case in enumerate(chosen):
        rng = np.random.default_rng(len(case.entry))
        for sizes in case.sizes if every else case.sizes[:1]:
            inputs = text_cases.typed(case, case.inputs(rng, sizes), dtype)
            label = (case.name or case.kernel, numerics, dtype, sizes)
            entry = f"case_{number}"
            made.append(Job(label, program, inputs, entry, {}, numerics, checked=False))
    return made


QUICK_KERNELS = ("torch", "onnx_model", "native")


@pytest.mark.parametrize("backend", [one_of(name) for name in QUICK_KERNELS])
def test_kernels(kernels: Programs, backend: str) -> None:
    jobs = kernel_jobs(kernels, "f32", "fast", every=False)
    compare(backend, jobs, [True] * len(jobs))


@pytest.mark.parametrize(
    ("backend", "dtype", "numerics"),
    [one_of(b, d, n, slow=True)
     for b in BACKENDS for d in DTYPES for n in ("exact", "equivalent", "fast")],
)  # fmt: skip
def test_kernels_at_all_sizes(kernels: Programs, backend: str, dtype: str, numerics: str) -> None:
    jobs = kernel_jobs(kernels, dtype, numerics, every=True)
    compare(backend, jobs, [True] * len(jobs))


# --- completeness ---------------------------------------------------------------------------------

TABLES = ("torch", "jax", "onnx", "native")


@pytest.mark.parametrize("backend", TABLES)
def test_every_row_of_the_table_is_reached(kernels: Programs, backend: str) -> None:
    """A kernel that no case chooses is not tested."""
    table = import_module(f"linnet.{backend}.natives.table").TABLE
    chosen: set[str] = set()

    def spy(numerics: str, device: str) -> Any:
        select, training = (table.selector(numerics, device, t) for t in (False, True))

        def noted(query: NativeQuery) -> NativeChoice | None:
            choices: list[NativeChoice | None] = [select(query), training(query)]
            chosen.update(choice.kernel for choice in choices if choice is not None)
            return choices[0]

        return noted

    for dtype in ("f32", "bf16"):
        binding = bind(kernels[dtype], None, {})
        for numerics, device in ways(backend):
            lower(binding, list(binding.program.entries(None)), select=spy(numerics, device))
    every = {row.kernel for row in table.rows}
    assert every - chosen == set()


def ways(backend: str) -> list[tuple[str, str]]:
    """Numerics and device, or what else a table is asked by, that between them choose every row."""
    if backend != "onnx":
        return [("fast", "cpu"), ("equivalent", "cpu")]
    target = import_module("linnet.onnx.natives.table").target
    return [("fast", target(20, False)), ("fast", target(24, False)), ("fast", target(24, True))]
