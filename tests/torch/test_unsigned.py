"""Unsigned words, for which PyTorch has next to no arithmetic of its own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import linnet.torch

from .support import checked, difference, oracle, to_numpy

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

DIVIDED = """
module words
pub entry run<N: Dim>(a: Tensor[N; T], b: Tensor[N; T], s: T)
    -> (Tensor[N; T], Tensor[N; T], Tensor[N; T], Tensor[N; T], Tensor[N; T], T, T) {
    return (a / b, a % b, a / s, a % s, s / b, s / 3, s % TOP)
}
"""


@pytest.mark.parametrize("dtype", ["u8", "u16", "u32", "u64"])
def test_unsigned_division(dtype: str, tmp_path: Path) -> None:
    """The largest number has the bits of -1, which is a divisor like any other."""
    numpy = np.dtype(dtype.replace("u", "uint"))
    top = int(np.iinfo(numpy).max)
    text = re.sub(r"\bT\b", dtype, DIVIDED.replace("TOP", str(min(top, 2**63 - 1))))
    program = checked(tmp_path, text)
    model = linnet.torch.load(program, numerics="exact", compile=False)
    a = np.array([0, 1, 7, top // 2, top - 1, top, 254], numpy)
    b = np.array([top, top, top, 2, top, top, 255], numpy)
    for s in (1, 3, top):
        want = oracle(program, "run", [a, b, s])
        got = to_numpy(model.run_entry("run", [a, b, s]))
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(x, y)


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
