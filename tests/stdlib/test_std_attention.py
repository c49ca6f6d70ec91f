"""Attention, rotary positions and paged attention, against loops over NumPy in f64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .std_support import Array, Run

bf16 = ml_dtypes.bfloat16
ATTENTION = "std.nn.attention::"


def draw(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def reference(q: Array, k: Array, v: Array, scale: float, mask: Array) -> Array:
    """`mask: [B, Q, K]`. A row without keys gets the mean of the values."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    share = q.shape[1] // max(k.shape[1], 1)
    y = np.zeros(q.shape)
    for b, h, i in np.ndindex(q.shape[:3]):
        scores = scale * (k[b, h // share] @ q[b, h, i])
        scores = np.where(mask[b, i], scores, -1e30)
        powers = np.exp(scores - scores.max())
        y[b, h, i] = powers / powers.sum() @ v[b, h // share]
    return y


def near(got: Array, want: Array) -> None:
    tolerance = 3e-6 if got.dtype == np.float32 else 2e-2
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("queries", "keys"), [(0, 3), (1, 1), (1, 5), (4, 4), (2, 6), (5, 3)])
def test_causal_mask(run: Run, queries: int, keys: int) -> None:
    mask = run(ATTENTION + "causal_mask", Q=queries, K=keys)
    want = [[k <= q + keys - queries for k in range(keys)] for q in range(queries)]
    assert mask.shape == (queries, keys) and mask.tolist() == want


SIZES = [  # B, H, Hk, Q, K, D
    (2, 4, 2, 3, 5, 4),
    (1, 3, 3, 1, 1, 1),
    (1, 6, 1, 2, 2, 3),
    (0, 2, 1, 2, 2, 2),
    (2, 2, 2, 0, 3, 2),
    (1, 0, 1, 2, 2, 2),
    (1, 2, 1, 2, 3, 0),
]


@pytest.mark.parametrize("dtype", [np.float32, bf16])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_grouped(run: Run, sizes: tuple[int, ...], dtype: Any) -> None:
    b, h, hk, n, m, d = sizes
    q = draw(b, h, n, d, dtype=dtype)
    k, v = (draw(b, hk, m, d, dtype=dtype, seed=s) for s in (1, 2))
    rows = np.random.default_rng(3).random((b, n, m)) < 0.5
    rows[:, :1] = False  # a query that sees nothing
    scale = np.float32(0.4)
    near(
        run(ATTENTION + "grouped_attention_rows", q, k, v, scale, rows),
        reference(q, k, v, float(scale), rows),
    )
    one = np.random.default_rng(4).random((n, m)) < 0.5
    one[-1:] = False
    want = reference(q, k, v, float(scale), np.broadcast_to(one, (b, n, m)))
    near(run(ATTENTION + "grouped_attention", q, k, v, scale, one), want)
    free = reference(q, k, v, float(scale), np.ones((b, n, m), bool))
    near(run(ATTENTION + "grouped_attention", q, k, v, scale), free)


@pytest.mark.parametrize("sizes", [(1, 3, 3, 1, 1, 1), (2, 2, 2, 4, 5, 3), (1, 0, 0, 2, 2, 2)])
def test_one_key_head_a_query_head(run: Run, sizes: tuple[int, ...]) -> None:
    b, h, _, n, m, d = sizes
    q = draw(b, h, n, d)
    k, v = (draw(b, h, m, d, seed=s) for s in (1, 2))
    mask = np.random.default_rng(3).random((b, n, m)) < 0.5
    scale = np.float32(0.7)
    want = reference(q, k, v, float(scale), mask)
    near(run(ATTENTION + "attention_rows", q, k, v, scale, mask), want)
    if b:
        want = reference(q, k, v, float(scale), np.broadcast_to(mask[0], mask.shape))
        near(run(ATTENTION + "attention", q, k, v, scale, mask[0]), want)


def test_sink_attention(run: Run) -> None:
    q, k, v = draw(2, 4, 3, 2), draw(2, 2, 5, 2, seed=1), draw(2, 2, 5, 2, seed=2)
    sinks, mask = draw(4, seed=3), np.random.default_rng(4).random((2, 3, 5)) < 0.5
    mask[0, 0] = False
    got = run(ATTENTION + "sink_attention", q, k, v, sinks, np.float32(0.5), mask)
    # A sink is a key with a score of its own and a value of 0.
    want = np.zeros(got.shape)
    for b, h, i in np.ndindex(2, 4, 3):
        scores = np.where(mask[b, i], 0.5 * (k[b, h // 2] @ q[b, h, i]), -1e30)
        powers = np.exp(np.append(scores, sinks[h]) - max(scores.max(), sinks[h]))
        want[b, h, i] = (powers / powers.sum())[:-1] @ v[b, h // 2]
    near(got, want)
    assert np.abs(got[0, :, 0]).max() == 0


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_paged(run: Run, rows: int) -> None:
    pages, size, heads, key_heads, d = 3, 4, 4, 2, 2
    table = np.random.default_rng(0).permutation(9)[: rows * pages].reshape(rows, pages)
    table = table.astype(np.int32)
    positions = np.array([11, 0, 5], np.int32)[:rows]
    k, v = draw(1, key_heads, 40, d), draw(1, key_heads, 40, d, seed=1)
    q, scale = draw(rows, heads, 1, d, seed=2), np.float32(0.6)
    place = table[:, np.arange(12) // size] * size + np.arange(12) % size
    keys, values = (np.moveaxis(x[0][:, place], 0, 1) for x in (k, v))
    mask = np.arange(12) <= positions[:, None]
    want = reference(q, keys, values, float(scale), mask[:, None])
    sizes = {"Size": size}
    near(run(ATTENTION + "paged_attention", q, k, v, table, positions, scale, **sizes), want)
    # Pages past a row's position may hold anything.
    spoilt = np.where(np.arange(pages) * size > positions[:, None], 1_000_000, table)
    spoilt = spoilt.astype(np.int32)
    near(run(ATTENTION + "paged_attention", q, k, v, spoilt, positions, scale, **sizes), want)


@pytest.mark.parametrize("tokens", [0, 1, 6])
def test_paged_prefill(run: Run, tokens: int) -> None:
    table = np.array([[2, 5, 1], [7, 0, 3]], np.int32)
    rows = np.array([1, 0, 0, 1, 1, 0], np.int32)[:tokens]
    positions = np.array([0, 3, 11, 9, 4, 0], np.int32)[:tokens]
    k, v, scale = draw(1, 1, 32, 2), draw(1, 1, 32, 2, seed=1), np.float32(0.6)
    q = draw(1, 2, tokens, 2, seed=2)
    got = run(ATTENTION + "paged_prefill_attention", q, k, v, table, rows, positions, scale, Size=4)
    one_by_one = run(
        ATTENTION + "paged_attention",
        np.moveaxis(q, 2, 0).reshape(tokens, 2, 1, 2),
        k,
        v,
        table[rows],
        positions,
        scale,
        Size=4,
    )
    near(got, np.moveaxis(one_by_one[:, :, 0], 0, 1)[None].astype(np.float64))


@pytest.mark.parametrize("sizes", [(2, 3, 4, 6), (1, 1, 1, 2), (2, 2, 0, 4), (1, 2, 3, 0)], ids=str)
def test_rope(run: Run, sizes: tuple[int, ...]) -> None:
    b, h, s, d = sizes
    x, angles = draw(b, h, s, d), draw(s, d // 2, seed=1)
    cosines, sines = (np.tile(f(angles), 2).astype(np.float32) for f in (np.cos, np.sin))
    turned = (x[..., : d // 2] + 1j * x[..., d // 2 :]) * np.exp(1j * angles)
    want = np.concatenate([turned.real, turned.imag], -1)
    near(run("std.nn.rope::rope", x, cosines, sines), want)
    if s:
        rows = np.random.default_rng(5).integers(0, s, b)
        one = x[np.arange(b), :, rows][:, :, None]
        got = run("std.nn.rope::rope_rows", one, cosines[rows][:, None], sines[rows][:, None])
        near(got, want[np.arange(b), :, rows][:, :, None])
