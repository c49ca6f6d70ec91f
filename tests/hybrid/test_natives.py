"""The natives of packed sequences and of routing against their bodies, run by the NumPy oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import linnet
import linnet.torch
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator

CONV = """
entry run<P: Dim, R: Dim, C: Dim>(
    x: Tensor[P, C; T], history: Tensor[R, 3, C; T], taps: Tensor[C, 4; T],
    rows: Tensor[P; i32], segments: Tensor[P; i32],
) -> Tensor[P, C; f32] where P > 0 {
    return causal_conv_packed(x, history, taps, rows, segments)
}
"""
HISTORY = """
entry run<P: Dim, R: Dim, C: Dim>(
    x: Tensor[P, C; T], history: Tensor[R, 3, C; T],
    rows: Tensor[P; i32], segments: Tensor[P; i32],
) -> Tensor[R, 3, C; T] where P > 0 {
    return packed_history<P, R, C, 4, T>(x, history, rows, segments)
}
"""
RULE = """
entry run<P: Dim, R: Dim>(
    q: Tensor[P, 2, 6; T], k: Tensor[P, 2, 6; T], v: Tensor[P, 4, 5; T],
    decay: Tensor[P, 4; f32], beta: Tensor[P, 4; f32], start: Tensor[R, 4, 6, 5; f32],
    rows: Tensor[P; i32], segments: Tensor[P; i32],
) -> Tensor[P + R * 6, 4, 5; f32] where P > 0 {
    return gated_delta_rule_packed(q, k, v, decay, beta, start, rows, segments, 0.5)
}
"""
TOP = """
entry run<R: Dim, N: Dim>(x: Tensor[R, N; T]) -> Tensor[R, 3; i64] where 3 <= N {
    return top_k<R, N, 3, T>(x)
}
"""
LINES = {  # the rows of `R` that runs continue, and how long the runs are
    "one": (1, [(0, 9)]),
    "mixed": (3, [(2, 6), (0, 1), (-1, 3)]),
    "short": (2, [(1, 1), (-1, 1), (0, 2)]),
    "long": (1, [(-1, 130), (0, 70)]),
}
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def program(folder: Path, names: str, text: str, dtype: str) -> Program:
    path = folder / "run.linnet"
    path.write_text(f"module run\n\nuse std.nn.{names}\n{text.replace('; T]', f'; {dtype}]')}"
                    .replace(", T>(", f", {dtype}>("))  # fmt: skip
    return linnet.load_program(path)


def both(source: Program, inputs: list[Any], kernel: str | None) -> tuple[Any, Any]:
    model = linnet.torch.load(source, entry="run")
    got = model.run_entry("run", [tensor(x) for x in inputs])
    if kernel is not None:
        assert f"def {kernel}(" in model.generated_source("run")
    want = Evaluator(source).run("run::run", inputs, {})
    return got.float().numpy() if got.is_floating_point() else got.numpy(), np.asarray(want)


def tensor(x: Any) -> torch.Tensor:
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.astype(np.float32)).bfloat16()
    return torch.from_numpy(x)


def line(name: str) -> tuple[int, int, Any, Any]:
    """Rows, tokens, and each token's row and segment."""
    count, runs = LINES[name]
    rows = np.concatenate([np.full(n, row, np.int32) for row, n in runs])
    segments = np.concatenate([np.full(n, 7 - k, np.int32) for k, (_, n) in enumerate(runs)])
    return count, len(rows), rows, segments


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", LINES)
def test_packed_convolution(tmp_path: Path, name: str, dtype: str) -> None:
    count, tokens, rows, segments = line(name)
    rng, kind = np.random.default_rng(0), DTYPES[dtype]
    x, history = rng.normal(size=(tokens, 8)), rng.normal(size=(count, 3, 8))
    given = [x.astype(kind), history.astype(kind), rng.normal(size=(8, 4)).astype(kind)]
    source = program(tmp_path, "recurrent::{causal_conv_packed}", CONV, dtype)
    got, want = both(source, [*given, rows, segments], "causal_conv_packed")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    source = program(tmp_path, "recurrent::{packed_history}", HISTORY, dtype)
    got, want = both(source, [*given[:2], rows, segments], None)
    assert np.array_equal(got, want.astype(np.float32))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", LINES)
def test_packed_rule(tmp_path: Path, name: str, dtype: str) -> None:
    count, tokens, rows, segments = line(name)
    rng, kind = np.random.default_rng(0), DTYPES[dtype]
    q, k, v = (rng.normal(size=s) for s in ((tokens, 2, 6), (tokens, 2, 6), (tokens, 4, 5)))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    decay = (-rng.exponential(size=(tokens, 4)) * 0.5).astype(np.float32)
    beta = rng.uniform(size=(tokens, 4)).astype(np.float32)
    start = rng.normal(size=(count, 4, 6, 5)).astype(np.float32)
    given = [q.astype(kind), k.astype(kind), v.astype(kind), decay, beta, start, rows, segments]
    source = program(tmp_path, "recurrent::{gated_delta_rule_packed}", RULE, dtype)
    got, want = both(source, given, "delta_rule_packed")
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("values", ["drawn", "equal", "zeros", "few"])
def test_top_k(tmp_path: Path, values: str, dtype: str) -> None:
    """Equal values, zeros of either sign and infinities come in the body's order."""
    rng = np.random.default_rng(0)
    x = {
        "drawn": rng.normal(size=(7, 40)),
        "equal": rng.integers(-2, 3, (7, 12)),
        "zeros": rng.choice([0.0, -0.0], (4, 9)),
        "few": rng.choice([-np.inf, -1e-30, 0.0, 3.0, np.inf], (5, 3)),
    }[values].astype(DTYPES[dtype])
    source = program(tmp_path, "moe::{top_k}", TOP, dtype)
    got, want = both(source, [x], "ordered_keys")
    assert np.array_equal(got, want)


def test_many_more_places_than_bits_of_a_narrow_key() -> None:
    from linnet.torch.kernels.experts import top_k

    x = torch.zeros(1, 70_000, dtype=torch.bfloat16)
    x[0, 69_999] = 1
    assert top_k(x, 3).tolist() == [[69_999, 0, 1]]


COMBINE = """
entry run<R: Dim>(
    x: Tensor[R, 2, 24; T], weight: Tensor[5, 16, 24; T], experts: Tensor[R, 2; i64],
    shares: Tensor[R, 2; T],
) -> Tensor[R, 16; T] {
    return combine_experts(x, weight, experts, shares)
}
"""


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_equivalent_sums_are_rounded_once(tmp_path: Path, rows: int) -> None:
    """In bf16 the products of one row stay in f32 until they are summed, as in the body."""
    rng = np.random.default_rng(0)
    shapes = ((rows, 2, 24), (5, 16, 24), (rows, 2))
    x, weight, shares = (rng.normal(size=s).astype(ml_dtypes.bfloat16) for s in shapes)
    chosen = rng.integers(0, 5, (rows, 2))
    source = program(tmp_path, "moe::{combine_experts}", COMBINE, "bf16")
    model = linnet.torch.load(source, entry="run", numerics="equivalent")
    got = model.run_entry("run", [tensor(v) for v in (x, weight, chosen, shares)]).float().numpy()
    assert "def combine_experts_wide(" in model.generated_source("run")
    want = Evaluator(source).run("run::run", [x, weight, chosen, shares], {}).astype(np.float32)
    assert (np.abs(got - want) <= 2.0**-8 * np.abs(want) + 1e-6).all()
