"""Attention over filled parts of caches against a plain softmax in NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

BF16 = ml_dtypes.bfloat16
DTYPES = pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
SCALE = 0.3


def plain(q: Any, k: Any, v: Any, seen: Any, sinks: Any = None) -> Any:
    """[B, H, Q, D] under seen [B, Q, K], in f64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * SCALE
    scores = np.where(seen[:, None], scores, -1e30)
    if sinks is not None:
        extra = np.broadcast_to(sinks[None, :, None, None], (*scores.shape[:3], 1))
        scores = np.concatenate([scores, extra], axis=-1)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", shares[..., : k.shape[2]], v)


def tensors(dtype: Any, b: int, h: int, hk: int, q: int, k: int, d: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    shapes = ((b, h, q, d), (b, hk, k, d), (b, hk, k, d))
    return tuple(rng.standard_normal(s).astype(dtype) for s in shapes)


def agree(y: Any, wanted: Any, dtype: Any) -> None:
    """f32: 2e-5. bf16: its rounding, and that of the weights where they are multiplied in bf16."""
    np.testing.assert_allclose(
        np.asarray(y, np.float64), wanted, rtol=2**-8 if dtype is BF16 else 0,
        atol=2e-5 if dtype is np.float32 else 8e-3,
    )  # fmt: skip


def upto(last: Any, keys: int) -> Any:
    """[B, Q] of last keys to [B, Q, K]."""
    return np.arange(keys)[None, None] <= np.asarray(last)[:, :, None]


@DTYPES
@pytest.mark.parametrize(
    "shape",
    [(1, 3, 1, 1, 40, 64), (2, 4, 2, 3, 300, 16), (1, 2, 2, 2, 600, 24), (2, 9, 3, 1, 17, 5)],
    ids=str,
)
def test_few_queries(kernels: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    b, _, _, n, keys, _ = shape
    q, k, v = tensors(dtype, *shape)
    for pos in (0, 1, 15, 16, keys // 2, keys - 1, keys + 7):
        base = np.array([pos], np.int32)
        y = kernels.attention(q, k, v, base=base)
        agree(y, plain(q, k, v, upto(np.full((b, n), pos), keys)), dtype)
        y = kernels.attention(q, k, v, base=base, causal=True, heads_inside=True)
        agree(y, plain(q, k, v, upto(np.full((b, n), pos) + np.arange(n), keys)), dtype)


@DTYPES
@pytest.mark.parametrize(
    "shape",
    [(1, 3, 1, 20, 20, 64), (2, 4, 2, 37, 130, 16), (1, 2, 2, 70, 300, 24), (2, 3, 3, 5, 9, 5),
     (1, 8, 1, 50, 200, 128)],
    ids=str,
)  # fmt: skip
def test_many_queries(kernels: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    b, _, _, n, keys, _ = shape
    q, k, v = tensors(dtype, *shape)
    y = kernels.attention(q, k, v, causal=True, offset=keys - n)
    wanted = plain(q, k, v, upto(np.tile(np.arange(n) + keys - n, (b, 1)), keys))
    agree(y, wanted, dtype)
    y = kernels.attention(q, k, v, causal=True, offset=keys - n, heads_inside=True)
    agree(y, wanted, dtype)
    y = kernels.attention(q, k, v, offset=keys - 1)
    agree(y, plain(q, k, v, np.ones((b, n, keys), bool)), dtype)


@DTYPES
@pytest.mark.parametrize("n", [1, 3, 21])
def test_rows_and_queries_of_their_own_length(kernels: Any, dtype: Any, n: int) -> None:
    b, keys = 3, 290
    q, k, v = tensors(dtype, b, 4, 2, n, keys, 32)
    base = np.array([0, 288, 40], np.int32)
    y = kernels.attention(q, k, v, base=base, base_strides=(1, 0))
    agree(y, plain(q, k, v, upto(np.tile(base[:, None], (1, n)), keys)), dtype)
    own = np.random.default_rng(1).integers(0, keys, (b, n)).astype(np.int32)
    y = kernels.attention(q, k, v, base=own, base_strides=(n, 1))
    agree(y, plain(q, k, v, upto(own, keys)), dtype)


@DTYPES
@pytest.mark.parametrize("n", [2, 18])
def test_a_query_that_sees_nothing_gets_the_mean(kernels: Any, dtype: Any, n: int) -> None:
    q, k, v = tensors(dtype, 2, 4, 2, n, 300, 16)
    own = np.tile(np.array([-1, 3], np.int32), n)[:n]
    own = np.stack([own, own[::-1]])
    own = np.ascontiguousarray(own)
    y = kernels.attention(q, k, v, base=own, base_strides=(n, 1))
    agree(y, plain(q, k, v, upto(own, 300)), dtype)


def test_what_is_past_the_bound_is_not_read(kernels: Any) -> None:
    for dtype in (np.float32, BF16):
        for n in (1, 17):
            q, k, v = tensors(dtype, 1, 2, 1, n, 400, 32)
            wanted = kernels.attention(q, k, v, base=np.array([100], np.int32))
            k[:, :, 101:] = v[:, :, 101:] = np.nan
            y = kernels.attention(q, k, v, base=np.array([100], np.int32))
            np.testing.assert_array_equal(y, wanted)


@DTYPES
@pytest.mark.parametrize("n", [1, 6])
def test_any_mask(kernels: Any, dtype: Any, n: int) -> None:
    q, k, v = tensors(dtype, 2, 4, 2, n, 530, 20)
    seen = np.random.default_rng(2).random((2, n, 530)) < 0.3
    seen[1, 0] = False
    seen[0, 0, :300] = False
    y = kernels.attention(q, k, v, mask=seen.view(np.uint8))
    agree(y, plain(q, k, v, seen), dtype)
    sinks = np.linspace(-2, 3, 4).astype(np.float32)
    y = kernels.attention(q, k, v, mask=seen.view(np.uint8), sinks=sinks)
    agree(y, plain(q, k, v, seen, sinks), dtype)
    shared = np.ascontiguousarray(seen[:1])
    y = kernels.attention(q, k, v, mask=shared.view(np.uint8))
    agree(y, plain(q, k, v, np.tile(shared, (2, 1, 1))), dtype)


def test_large_scores_stay_finite(kernels: Any) -> None:
    for n in (1, 20):
        q, k, v = (50 * x for x in tensors(np.float32, 1, 2, 2, n, 300, 64))
        y = kernels.attention(q, k, v, offset=299)
        assert np.isfinite(y).all()
        agree(y / 50, plain(q, k, v, np.ones((1, n, 300), bool)) / 50, BF16)


@DTYPES
@pytest.mark.parametrize("size", [1, 4, 16])
def test_pages(kernels: Any, dtype: Any, size: int) -> None:
    rng = np.random.default_rng(3)
    pages, rows, d = 320 // size, 3, 32
    pool = pages * rows
    table = rng.permutation(pool).reshape(rows, pages).astype(np.int32)
    table[1, 3:6] = np.arange(3) + table[1, 3].clip(0, pool - 3)
    _, k, v = tensors(dtype, 1, 1, 2, 1, pool * size, d)
    own = np.array([0, 319, 100, 17, 5000, 255], np.int32)
    of = np.array([0, 1, 2, 1, 0, 1], np.int32)
    q = rng.standard_normal((6, 4, d)).astype(dtype)
    places = (table[:, :, None] * size + np.arange(size)).reshape(rows, -1)
    for chosen, row_of in ((slice(0, 3), None), (slice(0, 6), of)):
        rows_used = np.arange(3) if row_of is None else of
        y = kernels.paged(
            np.ascontiguousarray(q[chosen]),
            k[0],
            v[0],
            table,
            own[chosen].copy(),
            size,
            row_of,
            SCALE,
        )
        for t, row in enumerate(rows_used):
            here = places[row]
            seen = upto([[own[t]]], 320)
            wanted = plain(q[None, t, :, None], k[:, :, here], v[:, :, here], seen)
            agree(y[t], wanted[0, :, 0], dtype)


@DTYPES
@pytest.mark.parametrize("size", [4, 16])
def test_prompts_in_pages(kernels: Any, dtype: Any, size: int) -> None:
    """Runs of tokens of one row, the second from the middle of its row on."""
    rng = np.random.default_rng(4)
    pages, d = 320 // size, 32
    table = rng.permutation(2 * pages).reshape(2, pages).astype(np.int32)
    _, k, v = tensors(dtype, 1, 1, 2, 1, 2 * 320, d)
    of = np.repeat(np.array([1, 0], np.int32), [70, 21])
    own = np.concatenate([np.arange(70), np.arange(200, 221)]).astype(np.int32)
    q = rng.standard_normal((91, 4, d)).astype(dtype)
    y = kernels.paged(q, k[0], v[0], table, own, size, of, SCALE)
    places = (table[:, :, None] * size + np.arange(size)).reshape(2, -1)
    for row in (0, 1):
        mine = of == row
        here = places[row]
        queries = q[mine].transpose(1, 0, 2)[None]
        wanted = plain(queries, k[:, :, here], v[:, :, here], upto(own[mine][None], 320))
        agree(y[mine], wanted[0].transpose(1, 0, 2), dtype)


def test_a_token_before_the_first_position_looks_at_place_0(kernels: Any) -> None:
    q, k, v = tensors(np.float32, 1, 2, 1, 1, 8, 16)
    table = np.array([[1, 0]], np.int32)
    y = kernels.paged(
        q[0].transpose(1, 0, 2).copy(), k[0], v[0], table, np.array([-1], np.int32), 4
    )
    np.testing.assert_array_equal(y[0], np.tile(v[0, :, 0], (2, 1)))


def test_pages_are_checked(loaded: Any) -> None:
    table = np.array([[0, 1, 2], [3, -1, 9]], np.int32)

    def check(positions: list[int], rows: list[int] | None = None, places: int = 16) -> int:
        of = None if rows is None else np.array(rows, np.int32)
        return int(loaded.check_pages(table, 4, places, np.array(positions, np.int32), of))

    assert check([11, 3]) == -1
    assert check([100, -5]) == -1
    assert check([0, 4]) == 1
    assert check([0, 0, 3], [0, 1, 1]) == -1
    assert check([0, 8], [0, 1]) == 1
    assert check([0, 0], [0, 2]) == 1
    assert check([0, 0], [0, -1]) == 1
    assert check([0, 3], None, 15) == 1
    assert check([0, 2], None, 15) == -1


def test_threads_change_nothing(kernels: Any) -> None:
    for dtype in (np.float32, BF16):
        for n in (1, 30):
            q, k, v = tensors(dtype, 2, 6, 3, n, 700, 64)
            results = []
            for threads in (1, 2, 3):
                kernels.lib.linnet_k_set_threads(threads)
                results.append(kernels.attention(q, k, v, causal=True, offset=700 - n))
            kernels.lib.linnet_k_set_threads(0)
            tolerance = 0 if n == 1 else 1e-2 if dtype is BF16 else 1e-5
            for y in results[1:]:
                one, two = results[0].astype(np.float32), y.astype(np.float32)
                np.testing.assert_allclose(one, two, atol=tolerance)


@DTYPES
@pytest.mark.parametrize("n", [1, 4, 40])
def test_without_keys_results_are_zeros(kernels: Any, dtype: Any, n: int) -> None:
    for heads, kv_heads in ((4, 2), (3, 3)):
        q, k, v = tensors(dtype, 2, heads, kv_heads, n, 0, 20)
        base, mask = np.array([3], np.int32), np.zeros((2, n, 0), np.uint8)
        sinks = np.ones(heads, np.float32)
        for inside in (False, True):
            for given in (
                {"offset": -1}, {"base": base}, {"base": base, "causal": True}, {"mask": mask},
                {"mask": mask, "sinks": sinks},
            ):  # fmt: skip
                y = kernels.attention(q, k, v, heads_inside=inside, **given)
                np.testing.assert_array_equal(y, np.zeros_like(q))


@DTYPES
@pytest.mark.parametrize("tokens", [1, 3, 40])
def test_without_pages_results_are_zeros(kernels: Any, dtype: Any, tokens: int) -> None:
    positions = np.zeros(tokens, np.int32)
    for pages, places in ((0, 8), (0, 0), (2, 0)):
        q, k, v = tensors(dtype, tokens, 4, 2, 1, places, 20)
        table = np.zeros((tokens, pages), np.int32)
        for rows in (None, np.zeros(tokens, np.int32)):
            y = kernels.paged(
                np.ascontiguousarray(q[:, :, 0]), k[0], v[0], table, positions - 1, 4, rows
            )
            np.testing.assert_array_equal(y, np.zeros_like(y))


@DTYPES
@pytest.mark.parametrize("n", [1, 20])
def test_scores_of_minus_infinity(kernels: Any, dtype: Any, n: int) -> None:
    """They have no share, however many come first; where there is nothing else, 0 / 0."""
    q, k, v = tensors(dtype, 1, 2, 1, n, 300, 32)
    q[..., 0] = 1
    k[:, :, :280, 0] = -np.inf
    seen = np.arange(300) >= 280
    wanted = plain(q, np.where(np.isinf(k), 0, k).astype(dtype), v, np.tile(seen, (1, n, 1)))
    mask = np.ones((1, n, 300), np.uint8)
    for given in ({"offset": 299}, {"mask": mask}):
        agree(kernels.attention(q, k, v, **given), wanted, dtype)
    mask[:, :, 280:] = 0
    for given in ({"offset": 279}, {"mask": mask}):
        assert np.isnan(kernels.attention(q, k, v, **given).astype(np.float32)).all()
    sinks = np.zeros(2, np.float32)
    assert (kernels.attention(q, k, v, mask=mask, sinks=sinks) == 0).all()
