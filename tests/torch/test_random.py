"""Random programs: PyTorch's exact run against the NumPy oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linnet.torch
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError

from ..ir.programs import reproducer, sample
from .support import as_program, checked, difference, oracle, to_numpy, to_torch

SEEDS = [
    *range(50),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(50, 1500)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_run_equals_the_oracle(seed: int) -> None:
    """Wherever the oracle has an answer; indices outside their axis have none, though PyTorch may
    not notice them, or notice them although nothing is read."""
    given = sample(seed)
    f = given.function
    name = f.name.rpartition("::")[2]
    try:
        want = Evaluator({f.name: f}).run(f.name, given.inputs, given.sizes)
    except EvaluationError:
        return
    model = linnet.torch.load(as_program(f), numerics="exact", compile=False)
    try:
        inputs = {key: to_torch(value) for key, value in given.inputs.items()}
        got = to_numpy(model.run_entry(name, inputs))
    except (RuntimeError, IndexError) as error:
        assert "bounds" in str(error) or "range" in str(error), reproducer(given)
        return
    for a, b in zip(got, want, strict=True):
        tolerance = 1e-2 if np.asarray(b).dtype.itemsize == 2 else 1e-5
        text = f"{reproducer(given)}\n{model.generated_source(name)}\n{a}\n{b}"
        assert difference(a, b) <= tolerance, text


UNSIGNED = """
module words
pub entry run<N: Dim>(a: Tensor[N; T], b: Tensor[N; T], s: T, f: Tensor[N; f32])
    -> (Tensor[N; T], Tensor[N; T], Tensor[N; T], Tensor[N; T], Tensor[N; T], Tensor[N; T],
        Tensor[N; bool], Tensor[N; bool], Tensor[N; f64], Tensor[N; f32], Tensor[N; T],
        Tensor[N; i8], T, T, Tensor[N; T], Tensor[N; T]) {
    let total = sum[n] a[n]
    let most = max[n] a[n]
    let mixed = min(max(a, b), s)
    return (a + b * s, a - b, shl(a, b & 31), shr(a, b & 31), a ^ (b | s), mixed,
            a < b, a >= s, cast<f64>(a), cast<f32>(b), cast<T>(f), cast<i8>(a), total, most,
            cumsum(a, axis = 0), -a)
}
"""


@pytest.mark.parametrize("dtype", ["u8", "u16", "u32", "u64"])
def test_unsigned_words(dtype: str, tmp_path: Path) -> None:
    """PyTorch has next to no arithmetic on the last three; generated code carries them in i64."""
    program = checked(tmp_path, UNSIGNED.replace("T", dtype).replace(f"{dtype}ensor", "Tensor"))
    model = linnet.torch.load(program, numerics="exact", compile=False)
    numpy = np.dtype(dtype.replace("u", "uint"))
    top = np.iinfo(numpy).max
    rng = np.random.default_rng(3)
    for n in (0, 1, 40):
        a, b = (rng.integers(0, top, n, dtype=numpy, endpoint=True) for _ in range(2))
        a[: n // 4] = top - a[: n // 4] % 4
        b[n // 2 :] %= numpy.type(35)
        f = (rng.normal(size=n) * 10.0 ** rng.integers(0, 22, n)).astype(np.float32)
        inputs = [a, b, int(top - 2), f]
        if n == 0:
            inputs[0] = a = np.zeros(1, numpy)
            inputs[1], inputs[3] = a, np.zeros(1, np.float32)
        want = oracle(program, "run", inputs)
        got = to_numpy(model.run_entry("run", inputs))
        for k, (x, y) in enumerate(zip(got, want, strict=True)):
            assert difference(x, y) == 0, (n, k, x, y)
            assert np.array_equal(x, y), (n, k, x, y)
