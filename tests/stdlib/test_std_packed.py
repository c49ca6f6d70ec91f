"""Packed sequences against the same sequences one at a time, and `top_k` against a stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from .std_support import Array, Run

RECURRENT = "std.nn.recurrent::"
ROWS = 3  # rows of state
# Each sequence's row and length; rows outside 0..3 begin from nothing and leave nothing.
PACKS = [
    [(2, 3), (7, 1), (0, 5)],
    [(1, 1)],
    [(-1, 2), (0, 1), (1, 1), (2, 4)],
    [(0, 6)],
]


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def named(pack: list[tuple[int, int]]) -> tuple[Array, Array, list[slice]]:
    """Every token's row and segment, and where each sequence lies."""
    rows = np.concatenate([np.full(n, row) for row, n in pack]).astype(np.int32)
    segments = np.concatenate([np.full(n, 5 + i) for i, (_, n) in enumerate(pack)])
    ends = np.cumsum([n for _, n in pack])
    return rows, segments.astype(np.int32), [
        slice(int(end) - n, int(end)) for (_, n), end in zip(pack, ends, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("taps", [1, 2, 4])
@pytest.mark.parametrize("pack", PACKS, ids=str)
def test_causal_conv_packed(run: Run, pack: list[tuple[int, int]], taps: int) -> None:
    rows, segments, spans = named(pack)
    x, history = draw(len(rows), 2), draw(ROWS, taps - 1, 2, seed=1)
    weight = draw(2, taps, seed=2)
    got = run(RECURRENT + "causal_conv_packed", x, history, weight, rows, segments)
    left = run(RECURRENT + "packed_history", x, history, rows, segments, W=taps)
    want, kept = np.zeros(got.shape, np.float32), history.copy()
    for (row, _), span in zip(pack, spans, strict=True):
        inside = 0 <= row < ROWS
        before = history[row] if inside else np.zeros_like(history[0])
        want[span] = run(RECURRENT + "causal_conv", x[None, span], before[None], weight)[0]
        if inside:
            both = np.concatenate([before, x[span]])
            kept[row] = both[len(both) - (taps - 1) :]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    assert left.tolist() == kept.tolist()


@pytest.mark.parametrize("pack", PACKS, ids=str)
def test_gated_delta_rule_packed(run: Run, pack: list[tuple[int, int]]) -> None:
    rows, segments, spans = named(pack)
    count, heads, values, kd, vd = len(rows), 1, 2, 3, 2
    q, k = draw(count, heads, kd, seed=1), draw(count, heads, kd, seed=2)
    v, decay = draw(count, values, vd, seed=3), -np.abs(draw(count, values, seed=4))
    beta, start = np.abs(draw(count, values, seed=5)) / 2, draw(ROWS, values, kd, vd, seed=6)
    scale = np.float32(0.7)
    name = RECURRENT + "gated_delta_rule_packed"
    got = run(name, q, k, v, decay, beta, start, rows, segments, scale)
    want, kept = np.zeros((count, values, vd), np.float32), start.copy()
    for (row, n), span in zip(pack, spans, strict=True):
        inside = 0 <= row < ROWS
        before = start[row] if inside else np.zeros_like(start[0])
        parts = [part[None, span] for part in (q, k, v, decay, beta)]
        one = run(RECURRENT + "gated_delta_rule", *parts, before[None], scale)[0]
        want[span] = one[:n]
        if inside:
            kept[row] = np.moveaxis(one[n:], 0, 1)
    np.testing.assert_allclose(got[:count], want, rtol=1e-5, atol=1e-6)
    states = got[count:].reshape(ROWS, kd, values, vd)
    np.testing.assert_allclose(np.moveaxis(states, 1, 2), kept, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rows", "count", "chosen"), [(4, 7, 3), (0, 3, 2), (2, 1, 1), (3, 4, 0)])
def test_top_k(run: Run, rows: int, count: int, chosen: int) -> None:
    x = np.random.default_rng(0).integers(0, 4, (rows, count)).astype(np.float32)
    got = run("std.nn.moe::top_k", x, K=chosen)
    want = np.argsort(-x, axis=1, kind="stable")[:, :chosen]
    assert got.dtype == np.int64 and got.tolist() == want.tolist()
