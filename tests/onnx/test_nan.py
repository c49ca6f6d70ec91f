"""NaN goes through reductions as the program says, also where the runtime passes it over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet.onnx
from linnet.ir.semantics import NUMPY
from linnet.types import DType

from .support import checked, oracle

TEXT = """
module m
use std.nn.decoding::{argmax}
use std.nn.softmax::{softmax}
use std.nn.loss::{log_softmax}
pub entry rows<T: Float, N: Dim, M: Dim>(x: Tensor[N, M; T]) -> (Tensor[N; T], Tensor[N; T]) {
    let most[n] = max[m] x[n, m]
    let least[n] = min[m] x[n, m]
    return (most, least)
}
pub entry columns<T: Float, N: Dim, M: Dim>(x: Tensor[N, M; T]) -> (Tensor[M; T], T) {
    let most[m] = max[n] x[n, m]
    let least = min[n, m] x[n, m]
    return (most, least)
}
pub entry pairs<T: Float, N: Dim, M: Dim>(x: Tensor[N, M; T])
    -> (Tensor[N, M; T], Tensor[N, M; T], Tensor[N, M; T]) {
    let places = iota<i64>(N)
    let other[n, m] = x[cast<i64>(N) - 1 - places[n], m]
    return (max(x, other), min(x, other), cumsum(x, axis=1))
}
pub entry first<T: Float, N: Dim, M: Dim>(x: Tensor[N, M; T]) -> Tensor[N; i32] {
    return argmax(x)
}
pub entry shares<T: Float, N: Dim, M: Dim>(x: Tensor[N, M; T])
    -> (Tensor[N, M; T], Tensor[N, M; f32]) {
    return (softmax(x), log_softmax(x))
}
"""
NAN, INF = np.nan, np.inf
ROWS = np.array([
    [1, NAN, 3], [NAN, 1, 2], [1, 2, NAN], [INF, NAN, 1], [NAN, NAN, NAN], [-INF, -INF, -INF],
    [-INF, INF, NAN], [2, 2, 1], [INF, INF, 0], [-INF, NAN, -INF],
])  # fmt: skip


@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_against_the_program(tmp_path: Path, numerics: str, dtype: str) -> None:
    program = checked(tmp_path, TEXT)
    model = linnet.onnx.load_model(program, numerics=numerics, threads=1)
    x = ROWS.astype(NUMPY[DType(dtype)])
    for entry in model.entries():
        got = model.run_entry(entry, [x], {"T": dtype})
        for a, b in zip(_list(got), _list(oracle(program, entry, [x], T=dtype)), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=1e-2, err_msg=entry)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]
