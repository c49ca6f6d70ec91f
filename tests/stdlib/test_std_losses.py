"""Losses, against `log(softmax)` in f64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .std_support import Array, Run

LOSS = "std.nn.loss::"


def draw(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def logs(logits: Array) -> Array:
    wide = logits.astype(np.float64)
    top = wide.max(-1, keepdims=True)
    return wide - top - np.log(np.exp(wide - top).sum(-1, keepdims=True))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("count", "vocab"), [(0, 3), (1, 1), (6, 9)])
def test_losses(run: Run, count: int, vocab: int, dtype: Any) -> None:
    logits = (draw(count, vocab) * 20).astype(dtype)
    targets = np.random.default_rng(1).integers(0, vocab, count)
    weights = draw(count, seed=2)
    weights[:1] = 0
    picked = logs(logits)[np.arange(count), targets]
    np.testing.assert_allclose(
        run(LOSS + "token_log_probs", logits, targets), picked, rtol=1e-5, atol=1e-5
    )
    loss = run(LOSS + "cross_entropy", logits, targets, weights)
    assert loss.shape == () and loss.dtype == np.float32
    np.testing.assert_allclose(loss, -(weights * picked).sum(), rtol=1e-5, atol=1e-4)
    got = run(LOSS + "log_softmax", logits)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, logs(logits), rtol=1e-5, atol=1e-5)
    entropy = -(np.exp(logs(logits)) * logs(logits)).sum(-1)
    np.testing.assert_allclose(run(LOSS + "entropy", logits), entropy, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shards", [1, 3])
def test_from_hidden_states(run: Run, dtype: Any, shards: int) -> None:
    """One device stands for all shards: the vocabulary is its part, repeated."""
    hidden, weight = draw(5, 4, dtype=dtype), draw(6, 4, dtype=dtype, seed=1)
    targets = np.random.default_rng(2).integers(0, 6 * shards, 5)
    weights = draw(5, seed=3)
    part = hidden.astype(np.float64) @ weight.astype(np.float64).T
    picked = logs(np.tile(part, (1, shards)))[np.arange(5), targets]
    loss = -(weights * picked).sum()
    if shards == 1:
        got = run(LOSS + "linear_token_log_probs", hidden, weight, targets)
        np.testing.assert_allclose(got, picked, rtol=1e-5, atol=1e-5)
        got = run(LOSS + "linear_cross_entropy", hidden, weight, targets, weights)
        np.testing.assert_allclose(got, loss, rtol=1e-5)
    sizes = {"Shards": shards}
    got = run(LOSS + "split_token_log_probs", hidden, weight, targets, **sizes)
    np.testing.assert_allclose(got, picked, rtol=1e-5, atol=1e-5)
    got = run(LOSS + "split_cross_entropy", hidden, weight, targets, weights, **sizes)
    np.testing.assert_allclose(got, loss, rtol=1e-5)
