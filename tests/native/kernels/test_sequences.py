"""The gated delta rule, products with chosen experts, the largest of a row."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

BF16 = ml_dtypes.bfloat16
DTYPES = pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
SCALE = 0.3


def made(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def line(
    dtype: Any, tokens: tuple[int, ...], key_heads: int, heads: int, keys: int, width: int
) -> Any:
    q, k = (made((*tokens, key_heads, keys), seed=s) / max(keys, 1) ** 0.5 for s in (1, 2))
    v, decay = made((*tokens, heads, width), dtype, 3), -abs(made((*tokens, heads), seed=4))
    return q.astype(dtype), k.astype(dtype), v, decay, 1 / (1 + made((*tokens, heads)) ** 2)


def advance(memory: Any, token: Any) -> tuple[Any, Any]:
    """The rule as the library states it, in f64: the output and the memory after it."""
    q, k, v, decay, beta = (x.astype(np.float64) for x in token)
    q, k = (np.repeat(x, len(v) // len(x), axis=0) for x in (q, k))
    memory = np.exp(decay)[:, None, None] * memory
    change = beta[:, None] * (v - np.einsum("hk,hkd->hd", k, memory))
    memory = memory + k[:, :, None] * change[:, None]
    return SCALE * np.einsum("hk,hkd->hd", q, memory), memory


@DTYPES
@pytest.mark.parametrize("sizes", [(1, 2, 5, 7), (2, 4, 16, 100), (1, 1, 33, 20)], ids=str)
def test_the_rule(kernels: Any, dtype: Any, sizes: tuple[int, ...]) -> None:
    _, heads, keys, width = sizes
    given = line(dtype, (2, 6), *sizes)
    start = made((2, heads, keys, width), seed=6)
    out, after = kernels.delta(*given, start)
    for b in range(2):
        memory = start[b].astype(np.float64)
        for t in range(6):
            wanted, memory = advance(memory, [x[b, t] for x in given])
            np.testing.assert_allclose(out[b, t], wanted, atol=2e-5)
        np.testing.assert_allclose(after[b], memory, atol=2e-5)


@pytest.mark.parametrize(
    ("rows", "segments"),
    [
        ([2, 2, 0, 0, 0], [5, 5, 3, 3, 3]),
        ([0, 1, 2, 0, 1], [0, 0, 0, 0, 0]),  # from row 0, to row 1
        ([0, 0, 1, 1, 0], [5, 5, 3, 3, 7]),  # two that end in row 0, the first continues it too
        ([9, 0, -1, 1, -7], [0, 0, 1, 1, 2]),  # from nothing, to nothing
        ([1, -1, 1, 1, 1], [0, 0, 1, 1, 2]),
    ],
    ids=str,
)
def test_sequences_end_to_end(kernels: Any, rows: list[int], segments: list[int]) -> None:
    """As the library's body goes, whatever rows the tokens of a run name."""
    given = line(np.float32, (5,), 1, 2, 6, 70)
    start = made((3, 2, 6, 70), seed=6)
    out, after = kernels.delta(
        *given, start, np.array(rows, np.int32), np.array(segments, np.int32)
    )
    wanted_after, memory = start.astype(np.float64), np.zeros(start.shape[1:])
    for t, row in enumerate(rows):
        known = 0 <= row < 3
        if t == 0 or segments[t] != segments[t - 1]:
            memory = start[row].astype(np.float64) if known else np.zeros(start.shape[1:])
        wanted, memory = advance(memory, [x[t] for x in given])
        np.testing.assert_allclose(out[t], wanted, atol=2e-5)
        if known and (t == 4 or segments[t + 1] != segments[t]):
            wanted_after[row] = memory
    np.testing.assert_allclose(after, wanted_after, atol=2e-5)


def test_a_rule_over_nothing(kernels: Any) -> None:
    start = made((2, 2, 3, 20))
    out, after = kernels.delta(*line(np.float32, (2, 0), 1, 2, 3, 20), start)
    np.testing.assert_array_equal(after, start)
    none = np.zeros(0, np.int32)
    out, after = kernels.delta(*line(np.float32, (0,), 1, 2, 3, 20), start, none, none)
    np.testing.assert_array_equal(after, start)
    empty = np.zeros((2, 2, 0, 20), np.float32)
    out, after = kernels.delta(*line(np.float32, (2, 4), 1, 2, 0, 20), empty)
    np.testing.assert_array_equal(out, np.zeros((2, 4, 2, 20), np.float32))


@DTYPES
@pytest.mark.parametrize("kind", ["", "f32", "bf16"], ids=["plain", "f32", "bf16"])
def test_experts(kernels: Any, dtype: Any, kind: str) -> None:
    w = (made((4, 20, 33)) / 6).astype(dtype)
    packed = kernels.pack_experts(kind, w) if kind else None
    chosen = np.random.default_rng(1).integers(0, 4, (9, 3))
    by = made((9, 3), dtype, 2)
    limit = 1e-5 if dtype is np.float32 and kind != "bf16" else 0.03
    for x in (made((9, 33), dtype, 3), made((9, 3, 33), dtype, 4)):
        wide = np.broadcast_to(x.reshape(9, -1, 33), (9, 3, 33)).astype(np.float64)
        each = np.einsum("rki,rkoi->rko", wide, w[chosen].astype(np.float64))
        y = kernels.experts(w, x, chosen, None, packed)
        np.testing.assert_allclose(y.astype(np.float64), each, atol=limit)
        y = kernels.experts(w, x, chosen, by, packed)
        wanted = np.einsum("rk,rko->ro", by.astype(np.float64), each)
        np.testing.assert_allclose(y.astype(np.float64), wanted, atol=3 * limit)
    for bad in (-1, 4):
        chosen[5, 1] = bad
        assert kernels.experts(w, made((9, 33), dtype), chosen, None, packed) == 16


@DTYPES
@pytest.mark.parametrize("rows", [1, 40])
def test_sums_of_no_products_are_zeros(kernels: Any, dtype: Any, rows: int) -> None:
    """No inputs, no experts a row."""
    for cols, k in ((0, 2), (8, 0), (0, 0)):
        w, x = np.ones((3, 20, cols), dtype), np.ones((rows, k, cols), dtype)
        chosen, by = np.ones((rows, k), np.int64), np.ones((rows, k), dtype)
        for packed in (None, kernels.pack_experts("f32", w), kernels.pack_experts("q8", w)):
            assert (kernels.experts(w, x, chosen, None, packed) == 0).all()
            assert (kernels.experts(w, x, chosen, by, packed) == 0).all()


@DTYPES
def test_the_largest(kernels: Any, dtype: Any) -> None:
    x = np.random.default_rng(5).integers(-9, 9, (6, 40)).astype(dtype)
    x[1, 7] = x[1, 30] = np.nan
    x[2, :] = -np.inf
    order = np.where(np.isnan(x.astype(np.float32)), np.inf, x.astype(np.float32))
    for k in (0, 1, 5, 40):
        wanted = np.argsort(-order, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(kernels.top_k(x, k), wanted)
    assert kernels.top_k(x[:, :0].copy(), 0).shape == (6, 0)
