"""Norms, softmax, rope, elementwise functions, look-ups and sampling."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

BF16 = ml_dtypes.bfloat16
DTYPES = pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
WIDTHS = (1, 5, 16, 33, 64, 100, 576)


def made(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def agree(y: Any, wanted: Any, dtype: Any, tolerance: float = 2e-6) -> None:
    """f32: near the last place; bf16: at most two units in the last place of 8 bits."""
    limit = tolerance if dtype is np.float32 else 2**-7
    got, want = np.asarray(y, np.float64), np.asarray(wanted, np.float64)
    np.testing.assert_allclose(got, want, rtol=limit, atol=limit * 0.2)


@DTYPES
@pytest.mark.parametrize("n", WIDTHS)
def test_norms(kernels: Any, dtype: Any, n: int) -> None:
    x, w, b = made((4, n), dtype), made((n,), dtype, 1), made((n,), dtype, 2)
    wide = x.astype(np.float64)
    unit = wide / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + 1e-5)
    agree(
        kernels.rms_norm(x, w, 1e-5),
        unit.astype(dtype).astype(np.float64) * w.astype(np.float64),
        dtype,
    )
    centred = wide - wide.mean(axis=-1, keepdims=True)
    unit = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    scaled = (unit.astype(dtype) * w).astype(dtype)
    if n > 1:
        agree(kernels.layer_norm(x, w, None, 1e-5), scaled, dtype, 2e-5)
        y = kernels.layer_norm(x, w, b, 1e-5)
        limit = 2e-5 if dtype is np.float32 else 0.04
        np.testing.assert_allclose(y.astype(float), (scaled + b).astype(float), atol=limit)


@DTYPES
@pytest.mark.parametrize("n", WIDTHS)
def test_softmax(kernels: Any, dtype: Any, n: int) -> None:
    x = (5 * made((4, n))).astype(dtype)
    x[1] = -3e38 if dtype is np.float32 else -1e38
    x[2] *= 1000
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    agree(kernels.softmax(x), powers / powers.sum(axis=-1, keepdims=True), dtype)
    x[3, n // 2] = np.nan
    assert np.isnan(kernels.softmax(x)[3].astype(np.float32)).all()


@DTYPES
@pytest.mark.parametrize("n", [2, 16, 37])
def test_softmax_of_minus_infinity_is_zero(kernels: Any, dtype: Any, n: int) -> None:
    x = made((3, n), dtype)
    x[:, ::2] = -np.inf
    y = kernels.softmax(x)
    np.testing.assert_array_equal(y[:, ::2], np.zeros_like(y[:, ::2]))
    agree(y.astype(np.float64).sum(axis=-1), np.ones(3), dtype)
    x[:] = -np.inf
    assert np.isnan(kernels.softmax(x).astype(np.float32)).all()


@DTYPES
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100, 1000])
def test_argmax(kernels: Any, dtype: Any, n: int) -> None:
    x = np.random.default_rng(n).integers(-6, 7, (20, n)).astype(dtype)
    np.testing.assert_array_equal(kernels.argmax(x), x.astype(np.float32).argmax(axis=-1))
    x[3] = -np.inf
    assert kernels.argmax(x)[3] == 0
    x[:, n // 2] = np.nan
    x[:, n - 1] = np.nan
    assert (kernels.argmax(x) == n // 2).all()


@DTYPES
@pytest.mark.parametrize("d", [2, 6, 16, 32, 64, 100])
def test_rope(kernels: Any, dtype: Any, d: int) -> None:
    x = made((2, 3, 5, d), dtype)
    for by_row in (False, True):
        shape = (2, 1, 5, d) if by_row else (1, 1, 5, d)
        cos, sin = made(shape, dtype, 1), made(shape, dtype, 2)
        turned = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], axis=-1)
        wanted = ((x * cos).astype(dtype) + (turned * sin).astype(dtype)).astype(dtype)
        y = kernels.rope(x, cos, sin, by_row=by_row)
        limit = 0 if dtype is BF16 else 1e-6
        np.testing.assert_allclose(y.astype(float), wanted.astype(float), rtol=limit, atol=limit)


@DTYPES
@pytest.mark.parametrize("n", [1, 16, 37, 40000])
def test_elementwise(kernels: Any, dtype: Any, n: int) -> None:
    x, z = (8 * made((n,))).astype(dtype), made((n,), dtype, 1)
    wide = x.astype(np.float64)
    silu = wide / (1 + np.exp(-wide))
    agree(kernels.map("silu", x), silu, dtype, 1e-6)
    times = silu.astype(dtype).astype(np.float64) * z.astype(np.float64)
    agree(kernels.map("silu_mul", x, z), times, dtype, 1e-6)
    inner = 0.7978845608028654 * (wide + 0.044715 * wide**3)
    agree(kernels.map("gelu", x), 0.5 * wide * (1 + np.tanh(inner)), dtype, 5e-6)
    total = (x.astype(np.float32) + z.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(kernels.map("add", x, z), total)


def test_extreme_inputs_of_silu(kernels: Any) -> None:
    x = np.array([-np.inf, -200, -90, -0.0, 0, 90, 1e38, np.inf, np.nan], np.float32)
    y = kernels.map("silu", x)
    np.testing.assert_allclose(y[1:7], [0, 0, 0, 0, 90, 1e38], atol=1e-30)
    assert np.isnan(y[8])
    assert y[7] == np.inf
    y = kernels.map("gelu", x)
    np.testing.assert_allclose(y[1:8], [0, 0, 0, 0, 90, 1e38, np.inf], atol=1e-30)


def test_exp(kernels: Any) -> None:
    x = np.concatenate([np.linspace(-87.3, 88.7, 20001), np.linspace(-1, 1, 2001)]).astype(
        np.float32
    )
    wanted = np.exp(x.astype(np.float64))
    error = np.abs(kernels.map("exp", x) - wanted) / np.spacing(wanted.astype(np.float32))
    assert error.max() < 2
    edges = np.array([0, -np.inf, np.inf, np.nan, -100, 89], np.float32)
    y = kernels.map("exp", edges)
    np.testing.assert_array_equal(y, [1, 0, np.inf, np.nan, 0, np.inf])
    far = np.array([-88.01, -104, -1e4, -3e38, -np.inf] * 7, np.float32)
    np.testing.assert_array_equal(kernels.map("exp", far), np.zeros_like(far))


def test_conversions(kernels: Any) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(
        kernels.convert(every.view(BF16), np.float32), every.view(BF16).astype(np.float32)
    )
    np.testing.assert_array_equal(
        kernels.convert(every.view(np.float16), np.float32),
        every.view(np.float16).astype(np.float32),
    )
    bits = np.random.default_rng(0).integers(0, 1 << 32, 100000, dtype=np.uint64)
    x = np.concatenate([
        bits.astype(np.uint32).view(np.float32),
        every.view(np.float16).astype(np.float32) * np.float32(1 + 2**-11),
        every.view(BF16).astype(np.float32) * np.float32(1 + 2**-8),
        np.array([65504, 65519.99, 65520, 6e-8, 3e-8, 2.98e-8], np.float32),
    ])  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):
        got = kernels.convert(x, BF16).astype(np.float32)
        np.testing.assert_array_equal(got, x.astype(BF16).astype(np.float32))
        np.testing.assert_array_equal(kernels.convert(x, np.float16), x.astype(np.float16))


@DTYPES
def test_embedding(kernels: Any, dtype: Any) -> None:
    table = made((50, 37), dtype)
    ids = np.array([0, 49, 3, 3, 17], np.int32)
    np.testing.assert_array_equal(kernels.embedding(table, ids), table[ids])
    assert kernels.embedding(table, np.array([0, 50, 1], np.int32)) == 1
    assert kernels.embedding(table, np.array([-1], np.int32)) == 0
    for kind in ("f32", "bf16", "int8", "q8", "q4"):
        packed = kernels.pack(kind, table)
        rows = packed.unpack()[ids]
        np.testing.assert_allclose(kernels.embedding(packed, ids), rows, rtol=1e-6, atol=1e-6)
        half = kernels.embedding(packed, ids, BF16).astype(np.float32)
        np.testing.assert_allclose(half, rows, rtol=2**-8, atol=1e-6)
        assert kernels.embedding(packed, np.array([0, 1, 51], np.int32)) == 2


def chosen(
    logits: Any, temperature: float, top_k: int, top_p: float, min_p: float, u: float
) -> int:
    """The contract of `sample`, in plain NumPy."""
    weights = np.exp((logits.astype(np.float64) - logits.max()) / np.float32(temperature))
    order = np.lexsort((np.arange(len(logits)), -weights))
    weights = weights[order]
    keep = len(order) if top_k == 0 else min(top_k, len(order))
    if top_p < 1:
        sums = np.cumsum(weights[:keep])
        keep = min(keep, int(np.searchsorted(sums, np.float32(top_p) * sums[-1])) + 1)
    while keep > 1 and weights[keep - 1] < np.float32(min_p) * weights[0]:
        keep -= 1
    sums = np.cumsum(weights[:keep])
    return int(order[min(int(np.searchsorted(sums, u * sums[-1], side="right")), keep - 1)])


def test_sampling(loaded: Any) -> None:
    rng = np.random.default_rng(7)
    for n in (1, 5, 300, 5000):
        logits = np.round(3 * made((n,), seed=n), 1)
        for _ in range(40):
            k = int(rng.choice([0, 1, 7, 400]))
            p = float(np.float32(rng.choice([1.0, 0.9, 0.3])))
            m = float(rng.choice([0.0, 0.1]))
            t, u = float(rng.uniform(0.2, 2)), float(rng.random())
            assert loaded.sample(logits, t, k, p, m, u) == chosen(logits, t, k, p, m, u)
    logits = np.array([1, 3, 3, 2], np.float32)
    assert loaded.sample(logits, 0.0) == 1
    assert loaded.sample(np.array([0, np.inf, 1], np.float32), 1.0) == 1
    assert loaded.sample(np.array([0, np.nan, 1], np.float32), 1.0) == 1


def test_what_is_excluded_is_never_drawn(loaded: Any) -> None:
    """Not even where sums in different orders leave a little over at the end."""
    logits = made((3000,), seed=3)
    logits[::3] = -np.inf
    last = float(np.nextafter(1.0, 0.0))
    for k in (0, 2999):
        for p in (1.0, 0.999):
            assert np.isfinite(logits[loaded.sample(logits, 1.0, k, p, 0.0, last)])
    # `uniform` is below 1; at 1 something is left over for certain.
    assert np.isfinite(logits[loaded.sample(logits, 1.0, uniform=1.0)])


@DTYPES
def test_rows_of_nothing(kernels: Any, dtype: Any) -> None:
    none, empty = np.zeros((0, 5), dtype), np.zeros((3, 0), dtype)
    for x in (none, empty):
        w = np.zeros(x.shape[1], dtype)
        for y in (
            kernels.rms_norm(x, w, 0.1),
            kernels.layer_norm(x, w, w, 0.1),
            kernels.softmax(x),
        ):
            assert y.shape == x.shape
    assert kernels.argmax(none).shape == (0,)
    assert kernels.embedding(none, np.zeros(0, np.int32)).shape == (0, 5)
    assert kernels.embedding(none, np.zeros(1, np.int32)) == 0
