"""The recurrent and expert layers, against loops in f64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .std_support import Array, Run

bf16 = ml_dtypes.bfloat16


def draw(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def wide(*arrays: Array) -> list[Array]:
    return [array.astype(np.float64) for array in arrays]


@pytest.mark.parametrize("dtype", [np.float32, bf16])
@pytest.mark.parametrize(("steps", "taps"), [(0, 1), (1, 1), (1, 4), (5, 3), (2, 6)])
def test_causal_conv(run: Run, steps: int, taps: int, dtype: Any) -> None:
    x, history = draw(2, steps, 3, dtype=dtype), draw(2, taps - 1, 3, dtype=dtype, seed=1)
    weight = draw(3, taps, dtype=dtype, seed=2)
    got = run("std.nn.recurrent::causal_conv", x, history, weight)
    inputs, w = np.concatenate(wide(history, x), 1), weight.astype(np.float64)
    want = np.zeros((2, steps, 3))
    for s in range(steps):
        want[:, s] = (inputs[:, s : s + taps] * w.T).sum(1)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def delta_rule(
    q: Array, k: Array, v: Array, decay: Array, beta: Array, start: Array, scale: float
) -> Array:
    q, k, v, decay, beta, state = wide(q, k, v, decay, beta, start)
    share = v.shape[2] // k.shape[2]
    out = np.zeros(v.shape)
    for b, h in np.ndindex(v.shape[0], v.shape[2]):
        for s in range(v.shape[1]):
            key, query = k[b, s, h // share], q[b, s, h // share]
            state[b, h] *= np.exp(decay[b, s, h])
            change = beta[b, s, h] * (v[b, s, h] - key @ state[b, h])
            state[b, h] += np.outer(key, change)
            out[b, s, h] = scale * (query @ state[b, h])
    return np.concatenate([out, np.moveaxis(state, 1, 2)], 1)


@pytest.mark.parametrize("dtype", [np.float32, bf16])
@pytest.mark.parametrize(
    "sizes", [(2, 5, 2, 4, 3, 2), (1, 0, 1, 1, 2, 3), (1, 1, 1, 3, 1, 1)], ids=str
)
def test_gated_delta_rule(run: Run, sizes: tuple[int, ...], dtype: Any) -> None:
    b, s, hk, hv, kd, vd = sizes
    q, k = (draw(b, s, hk, kd, dtype=dtype, seed=i) for i in (1, 2))
    v, decay = draw(b, s, hv, vd, dtype=dtype, seed=3), -np.abs(draw(b, s, hv, seed=4))
    beta, start = np.abs(draw(b, s, hv, seed=5)) / 2, draw(b, hv, kd, vd, seed=6)
    scale = np.float32(0.7)
    got = run("std.nn.recurrent::gated_delta_rule", q, k, v, decay, beta, start, scale)
    assert got.shape == (b, s + kd, hv, vd) and got.dtype == np.float32
    want = delta_rule(q, k, v, decay, beta, start, float(scale))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    if s:
        step = run(
            "std.nn.recurrent::gated_delta_step",
            q[:, 0], k[:, 0], v[:, 0], decay[:, 0], beta[:, 0], start, scale,
        )  # fmt: skip
        one = [x[:, :1] for x in (q, k, v, decay, beta)]
        first = delta_rule(one[0], one[1], one[2], one[3], one[4], start, float(scale))
        np.testing.assert_allclose(step, first, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, bf16])
@pytest.mark.parametrize(
    "sizes", [(5, 2, 3, 4, 6), (0, 2, 3, 4, 2), (1, 1, 1, 1, 1), (2, 0, 3, 2, 2)], ids=str
)
def test_experts(run: Run, sizes: tuple[int, ...], dtype: Any) -> None:
    rows, chosen, inner, experts, outer = sizes
    x, one = draw(rows, chosen, inner, dtype=dtype), draw(rows, inner, dtype=dtype, seed=1)
    weight = draw(experts, outer, inner, dtype=dtype, seed=2)
    picks = np.random.default_rng(3).integers(0, experts, (rows, chosen))
    weights = draw(rows, chosen, dtype=dtype, seed=4)
    tolerance = 1e-5 if dtype is np.float32 else 2e-2
    x64, one64, w64, weights64 = wide(x, one, weight, weights)
    each = np.einsum("rki,rkoi->rko", x64, w64[picks])
    cases = {
        "linear_experts": ((x, weight, picks), each),
        "linear_experts_shared": (
            (one, weight, picks),
            np.einsum("ri,rkoi->rko", one64, w64[picks]),
        ),
        "combine_experts": (
            (x, weight, picks, weights),
            np.einsum("rk,rko->ro", weights64, each),
        ),
    }
    for name, (inputs, want) in cases.items():
        got = run(f"std.nn.moe::{name}", *inputs)
        assert got.shape == want.shape and got.dtype == np.dtype(dtype), name
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)
