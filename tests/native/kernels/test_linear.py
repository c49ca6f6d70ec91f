"""Products with packed weights, every kind on every instruction set."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

BF16 = ml_dtypes.bfloat16
ROWS = (1, 2, 3, 5, 8, 13, 31, 65)
SHAPES = ((16, 32), (17, 33), (48, 64), (100, 200), (7, 5), (130, 96))


def close(y: Any, wanted: Any, tolerance: float) -> None:
    """Within `tolerance` of the size of the largest row of results."""
    got = np.asarray(y, np.float64)
    size = np.sqrt((wanted**2).mean(axis=-1, keepdims=True)).max(initial=1e-30)
    assert np.abs(got - wanted).max(initial=0.0) < tolerance * size


def made(n: int, k: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((n, k)).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_floats(kernels: Any, kind: str, shape: tuple[int, int]) -> None:
    n, k = shape
    w, bias = made(n, k), made(1, n, 1)[0]
    exact = w if kind == "f32" else w.astype(BF16).astype(np.float32)
    packed = kernels.pack(kind, w)
    np.testing.assert_array_equal(packed.unpack(), exact)
    for rows in ROWS:
        x = made(rows, k, rows)
        wanted = x.astype(np.float64) @ exact.astype(np.float64).T
        close(packed(x), wanted, 2e-5)
        close(packed(x, bias), wanted + bias, 2e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_bf16_inputs(kernels: Any, kind: str, shape: tuple[int, int]) -> None:
    n, k = shape
    w, bias = made(n, k).astype(BF16), made(1, n, 1)[0].astype(BF16)
    packed = kernels.pack(kind, w)
    for rows in ROWS:
        x = made(rows, k, rows).astype(BF16)
        wanted = x.astype(np.float64) @ w.astype(np.float64).T + bias.astype(np.float64)
        # Half a unit of the result's last place, and what f32 sums add.
        got = packed(x, bias).astype(np.float64)
        assert (np.abs(got - wanted) <= np.abs(wanted) * 2**-8 + 2e-5 * np.sqrt(k)).all()
        close(packed(x, bias.astype(np.float32), wide=True), wanted, 3e-5)


@pytest.mark.parametrize("kind", ["int8", "q8", "q4", "q4_64"])
@pytest.mark.parametrize("shape", [(48, 64), (33, 100), (16, 320), (70, 576)], ids=str)
def test_quantised(kernels: Any, kind: str, shape: tuple[int, int]) -> None:
    n, k = shape
    w, bias = made(n, k), made(1, n, 1)[0]
    packed = kernels.pack(kind[:4].split("_")[0], w, 64 if kind == "q4_64" else 32)
    held = packed.unpack()
    # 8 bits: half a step of 1/127 of the largest; 4 bits: a step of a quarter or so of a deviation.
    limit = {"int8": 0.02, "q8": 0.01}.get(kind, 0.13)
    assert np.sqrt(((held - w) ** 2).mean()) < limit
    for rows in ROWS:
        x = made(rows, k, rows)
        wanted = x.astype(np.float64) @ held.astype(np.float64).T + bias
        close(packed.rounded(False)(x, bias), wanted, 4e-5)
        close(packed.rounded(True)(x, bias), wanted, 0.05)
        half = x.astype(BF16)
        wanted = half.astype(np.float64) @ held.astype(np.float64).T
        close(packed.rounded(False)(half), wanted, 0.02)
        close(packed.rounded(True)(half), wanted, 0.05)


def test_rounded_products_are_exact_in_integers(kernels: Any) -> None:
    """With integers and scales of one, rounding x loses nothing."""
    rng = np.random.default_rng(3)
    w = rng.integers(-7, 8, (40, 96)).astype(np.float32)
    w[:, ::32] = -8
    x = rng.integers(-127, 128, (3, 96)).astype(np.float32)
    x[:, ::32] = 127
    packed = kernels.pack("q4", w)
    np.testing.assert_array_equal(packed.unpack(), w)
    close(packed.rounded(True)(x), x.astype(np.float64) @ w.T.astype(np.float64), 1e-6)
    w = rng.integers(-127, 128, (40, 96)).astype(np.float32)
    w[:, ::32] = -127
    for kind in ("int8", "q8"):
        packed = kernels.pack(kind, w)
        close(packed.rounded(True)(x), x.astype(np.float64) @ w.T.astype(np.float64), 1e-6)


def q8_0(rng: Any, n: int, k: int) -> tuple[Any, Any]:
    scale = rng.uniform(0.001, 0.1, (n, k // 32, 1)).astype(np.float16)
    q = rng.integers(-128, 128, (n, k // 32, 32)).astype(np.int8)
    blocks = np.concatenate([scale.view(np.uint8), q.view(np.uint8)], axis=-1)
    return np.ascontiguousarray(blocks), (scale.astype(np.float32) * q).reshape(n, k)


def q4(rng: Any, n: int, k: int, offsets: bool) -> tuple[Any, Any]:
    scale = rng.uniform(0.001, 0.1, (n, k // 32, 1)).astype(np.float16)
    offset = rng.uniform(-0.5, 0.5, (n, k // 32, 1)).astype(np.float16)
    q = rng.integers(0, 16, (n, k // 32, 32)).astype(np.uint8)
    packed = q[..., :16] | (q[..., 16:] << 4)
    head = [scale, offset] if offsets else [scale]
    blocks = np.concatenate([*(h.view(np.uint8) for h in head), packed], axis=-1)
    wide = scale.astype(np.float32)
    low = offset.astype(np.float32) if offsets else -8 * wide
    return np.ascontiguousarray(blocks), (wide * q + low).reshape(n, k)


@pytest.mark.parametrize("kind", ["q8", "q4", "q4_1"])
@pytest.mark.parametrize("shape", [(32, 64), (21, 96), (5, 32)], ids=str)
def test_gguf_blocks(kernels: Any, kind: str, shape: tuple[int, int]) -> None:
    n, k = shape
    rng = np.random.default_rng(4)
    blocks, w = q8_0(rng, n, k) if kind == "q8" else q4(rng, n, k, kind == "q4_1")
    packed = kernels.pack_blocks(kind, blocks, n, k)
    np.testing.assert_allclose(packed.unpack(), w, rtol=1e-6, atol=1e-6)
    for rows in ROWS:
        x = made(rows, k, rows)
        wanted = x.astype(np.float64) @ w.astype(np.float64).T
        close(packed.rounded(False)(x), wanted, 4e-5)
        close(packed.rounded(True)(x), wanted, 0.05)


def test_joined(kernels: Any) -> None:
    parts = [made(10, 64), made(23, 64, 1).astype(BF16), made(1, 64, 2)]
    whole = np.concatenate([p.astype(np.float32) for p in parts])
    for kind in ("f32", "bf16", "int8", "q8", "q4"):
        joined = kernels.pack_joined(kind, parts)
        np.testing.assert_array_equal(joined.unpack(), kernels.pack(kind, whole).unpack())
    rng = np.random.default_rng(4)
    pairs = [q4(rng, n, 64, False) for n in (5, 19)]
    joined = kernels.pack_joined("q4", [b for b, _ in pairs], block=2, k=64)
    np.testing.assert_allclose(
        joined.unpack(), np.concatenate([w for _, w in pairs]), rtol=1e-6, atol=1e-6
    )


def test_not_a_number_goes_through(kernels: Any) -> None:
    w = made(20, 64)
    w[3, 5] = np.nan
    x = made(2, 64, 1)
    for kind in ("f32", "bf16", "int8", "q8", "q4"):
        for rounded in (False, True):
            y = kernels.pack(kind, w).rounded(rounded)(x)
            assert np.isnan(y[:, 3]).all(), kind
            assert np.isfinite(np.delete(y, 3, axis=1)).all(), kind
    x[1, 7] = np.inf
    for kind in ("int8", "q8", "q4"):
        y = kernels.pack(kind, made(20, 64)).rounded(True)(x)
        assert np.isfinite(y[0]).all()
        assert not np.isfinite(y[1]).any()


@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
@pytest.mark.parametrize(
    ("kind", "group", "most"),
    [("q8", 32, 65504 * 127), ("q4", 32, 65504 * 8), ("q4", 64, 65504 * 8)],
)
def test_weights_that_a_scale_in_f16_cannot_reach_are_refused(
    loaded: Any, kind: str, group: int, most: float, dtype: Any
) -> None:
    w = made(40, 128).astype(dtype)
    for large in (most * 1.01, 1e20, 3e38):
        for sign in (1, -1):
            w[33, 70] = sign * large
            with pytest.raises(ValueError, match=r"a group of weights reaches .*bf16 and int8"):
                loaded.pack(kind, w, group)
            for other in ("f32", "bf16", "int8"):
                assert np.isfinite(loaded.pack(other, w).unpack()).all()
    w[33, 70] = -most * 0.98
    held = loaded.pack(kind, w, group).unpack()
    np.testing.assert_allclose(held[33, 70], float(w[33, 70]), rtol=0.02)
    w[33, 70], w[33, 71] = np.inf, 1e20  # no number to begin with
    held = loaded.pack(kind, w, group).unpack()
    assert np.isnan(held[33, 70]) and np.isfinite(held[32]).all()


@pytest.mark.parametrize("kind", ["f32", "bf16", "int8", "q8", "q4"])
@pytest.mark.parametrize("shape", [(32, 64), (96, 33), (160, 576)], ids=str)
def test_one_half_gates_the_other(kernels: Any, kind: str, shape: tuple[int, int]) -> None:
    packed = kernels.pack(kind, (made(*shape) / shape[1] ** 0.5).astype(np.float32))
    held = packed.unpack().astype(np.float64)
    for rows in (*ROWS, 200):
        x = made(rows, shape[1], rows)
        gate, up = np.split(x.astype(np.float64) @ held.T, 2, axis=1)
        silu = gate / (1 + np.exp(-gate))
        wanted = silu * up
        close(packed.rounded(False).gated(x), wanted, 4e-5)
        # Each factor carries the error of rounding x, as in `test_quantised`.
        g, u = (0.05 * np.sqrt((each**2).mean()) for each in (gate, up))
        limit = 1.1 * g * abs(up) + u * abs(silu) + g * u + 2**-8 * abs(wanted)
        for y in (packed.rounded(True).gated(x), packed.gated(x.astype(BF16))):
            assert (abs(np.asarray(y, np.float64) - wanted) <= limit).all()


def test_the_number_of_threads_changes_nothing(kernels: Any) -> None:
    w, x = made(300, 200), made(40, 200, 1)
    for kind in ("f32", "bf16", "int8", "q4"):
        packed = kernels.pack(kind, w)
        results = []
        for threads in (1, 2, 5):
            kernels.lib.linnet_k_set_threads(threads)
            results.append((packed(x[:1]), packed(x), packed(x.astype(BF16))))
        kernels.lib.linnet_k_set_threads(0)
        for other in results[1:]:
            for one, two in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(one, two)


def test_products_in_turn_while_matrices_come_and_go(kernels: Any) -> None:
    """Threads that wait ask for the weights that came next the last time, which may be gone."""
    x = made(1, 200)
    kernels.lib.linnet_k_set_threads(3)
    try:
        for turn in range(6):
            ws = [made(700 + 16 * k, 200, turn + k) for k in range(4)]
            packed = [kernels.pack("f32", w) for w in ws]
            for _ in range(3):
                for w, matrix in zip(ws, packed, strict=True):
                    np.testing.assert_allclose(matrix(x), x @ w.T, rtol=1e-4, atol=1e-4)
                packed[turn % 4] = kernels.pack("f32", ws[turn % 4])
    finally:
        kernels.lib.linnet_k_set_threads(0)


def test_nothing_to_do(kernels: Any) -> None:
    for kind in ("f32", "bf16", "int8", "q8", "q4"):
        assert kernels.pack(kind, made(0, 32))(made(3, 32)).shape == (3, 0)
        assert kernels.pack(kind, made(8, 32))(made(0, 32)).shape == (0, 8)
        bias = made(1, 8)[0]
        empty, halves = kernels.pack(kind, made(8, 0)), kernels.pack(kind, made(32, 0))
        for rows in (1, 40):
            for x in (made(rows, 0), made(rows, 0).astype(BF16)):
                y = empty(x, bias.astype(x.dtype))
                np.testing.assert_array_equal(y, np.tile(bias.astype(x.dtype), (rows, 1)))
                assert (empty(x) == 0).all()
                assert (halves.gated(x) == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
def test_a_product_of_nothing_is_zeros(kernels: Any, dtype: Any) -> None:
    for batch, m, n in ((1, 1, 7), (2, 40, 70), (5, 3, 16)):
        a, b = np.zeros((batch, m, 0), dtype), np.zeros((batch, 0, n), dtype)
        for transposed in (False, True):
            right = b.transpose(0, 2, 1).copy() if transposed else b
            y = kernels.matmul(a, right, transposed=transposed)
            np.testing.assert_array_equal(y, np.zeros((batch, m, n), dtype))


def test_sizes_out_of_reason_are_refused(loaded: Any) -> None:
    one = np.zeros((1, 1), np.float32)
    huge = np.lib.stride_tricks.as_strided(one, (1 << 30, 1 << 30), (0, 0))
    with pytest.raises(ValueError, match="size"):
        loaded.pack("f32", huge)
    with pytest.raises(ValueError, match="groups"):
        loaded.pack("q4", made(4, 64), 48)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
def test_matmul(kernels: Any, transposed: bool, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    for batch, m, n, k in ((1, 5, 7, 9), (3, 20, 33, 40), (2, 1, 64, 17), (1, 70, 16, 3)):
        a = rng.standard_normal((batch, m, k)).astype(dtype)
        shape = (batch, n, k) if transposed else (batch, k, n)
        b = rng.standard_normal(shape).astype(dtype)
        right = b.astype(np.float64)
        wanted = a.astype(np.float64) @ (right.transpose(0, 2, 1) if transposed else right)
        close(
            kernels.matmul(a, b, transposed=transposed),
            wanted,
            2e-5 if dtype is np.float32 else 0.03,
        )
