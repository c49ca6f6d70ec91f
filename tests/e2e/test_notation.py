"""Index notation against `einsum` and fancy indexing."""

from __future__ import annotations

import numpy as np
import pytest

from .programs import Runner, floats, same


def test_products_traces_and_diagonals(run: Runner) -> None:
    text = """
    pub entry main<M: Dim, K: Dim, N: Dim>(
        a: Tensor[M, K; f32], b: Tensor[K, N; f32], c: Tensor[N, N; f32]
    )
        -> (Tensor[M, N; f32], f32, Tensor[N; f32], Tensor[N, M; f32])
    {
        let p[m, n] = sum[k] a[m, k] * b[k, n]
        let t = sum[n] c[n, n]
        let d[n] = c[n, n] * 2
        let turned[n, m] = sum[i] c[n, i] * p[m, i]
        return (p, t, d, turned)
    }
    """
    a, b, c = floats(2, 3), floats(3, 4, seed=1), floats(4, 4, seed=2)
    p = a @ b
    same(run(text, [a, b, c]), (p, float(np.trace(c)), np.diag(c) * 2, c @ p.T), 1e-5)


def test_reductions(run: Runner) -> None:
    text = """
    pub entry main<M: Dim, N: Dim>(x: Tensor[M, N; f32])
        -> (Tensor[M; f32], Tensor[N; f32], Tensor[M; f32], f32, Tensor[M; bool], bool)
    where M > 0, N > 0 {
        let largest[m] = max[n] x[m, n]
        let least[n] = min[m] x[m, n]
        let product[m] = prod[n] x[m, n]
        let total = sum[m, n] x[m, n]
        let some_above[m] = any[n] x[m, n] > 1.0
        let every = all[m, n] x[m, n] < 100.0
        return (largest, least, product, total, some_above, every)
    }
    """
    x = floats(3, 4)
    want = (x.max(1), x.min(0), x.prod(1), float(x.sum()), (x > 1).any(1), True)
    same(run(text, [x]), want, 1e-5)


def test_empty_sums(run: Runner) -> None:
    text = """
    pub entry main<M: Dim, N: Dim>(x: Tensor[M, N; f32])
        -> (Tensor[M; f32], Tensor[M; f32], Tensor[M; bool], Tensor[M; bool]) {
        let s[m] = sum[n] x[m, n]
        let p[m] = prod[n] x[m, n]
        let e[m] = any[n] x[m, n] > 0.0
        let a[m] = all[n] x[m, n] > 0.0
        return (s, p, e, a)
    }
    """
    zero = np.zeros(2, np.float32)
    same(run(text, [floats(2, 0)]), (zero, zero + 1, zero > 0, zero == 0))


def test_accumulating_in_another_dtype(run: Runner) -> None:
    text = """
    pub entry main<N: Dim>(x: Tensor[N; i8]) -> (i64, i8, f32) {
        let wide = sum<i64>[n] x[n]
        let narrow = sum[n] x[n]
        let mean = sum<f32>[n] x[n] / 2
        return (wide, narrow, mean)
    }
    """
    x = np.full(5, 101, np.int8)
    same(run(text, [x]), (505, 505 - 512, 250.0))


def test_gathers(run: Runner) -> None:
    text = """
    pub entry main<P: Dim, D: Dim, N: Dim, M: Dim>(
        table: Tensor[P, D; f32], ids: Tensor[N, M; i32], at: i32
    )
        -> (Tensor[N, M, D; f32], Tensor[N; f32], Tensor[D; f32])
    where D > 1 {
        let rows[n, m, d] = table[ids[n, m], d]
        let summed[n] = sum[m] table[ids[n, m], 1]
        let one[d] = table[at, d] + table[at - 1, d]
        return (rows, summed, one)
    }
    """
    table, ids = floats(6, 3), np.array([[0, 5], [2, 2], [1, 0]], np.int32)
    want = (table[ids], table[ids, 1].sum(1), table[4] + table[3])
    same(run(text, [table, ids, 4]), want)


def test_positions_and_masks(run: Runner) -> None:
    text = """
    pub entry main<N: Dim>(x: Tensor[N, N; f32]) -> (Tensor[N, N; f32], Tensor[N; f32]) {
        let places = iota(N)
        let kept[i, j] = select(places[j] <= places[i] && !(x[i, j] < 0.0), x[i, j], 0.0)
        let turned[i] = x[i, N - 1 - places[i]]
        return (kept, turned)
    }
    """
    x = floats(4, 4)
    seen = np.tril(np.ones((4, 4), bool)) & ~(x < 0)
    same(run(text, [x]), (np.where(seen, x, 0).astype(np.float32), np.diag(x[:, ::-1]).copy()))


def test_packs_of_axes(run: Runner) -> None:
    text = """
    pub entry main<*S: Shape, I: Dim, O: Dim>(x: Tensor[*S, I; f32], w: Tensor[O, I; f32])
        -> (Tensor[*S, O; f32], Tensor[*S; f32]) {
        let y[*s, o] = sum[i] x[*s, i] * w[o, i]
        let n[*s] = sum[i] x[*s, i] * x[*s, i]
        return (y, n)
    }
    """
    w = floats(2, 3, seed=1)
    for shape in ((3,), (4, 3), (2, 2, 3), (0, 3)):
        x = floats(*shape)
        want = (x @ w.T, (x * x).sum(-1))
        got = run(text, [x, w])
        np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-6)


def test_nested_reductions_and_shadowed_names(run: Runner) -> None:
    text = """
    pub entry main<N: Dim, M: Dim>(x: Tensor[N, M; f32]) -> (Tensor[N; f32], f32)
    where M > 0 {
        let m = 7.0
        let y[n] = (sum[m] exp(x[n, m] - max[m] x[n, m])) + 1.0
        let z = sum[n] (max[m] x[n, m]) * 2.0 + cast<f32>(m)
        return (y, z)
    }
    """
    x = floats(3, 4)
    y = np.exp(x - x.max(1, keepdims=True)).sum(1) + 1
    same(run(text, [x]), (y, float((x.max(1) * 2 + 7).sum())), 1e-5)


def test_attention_written_out(run: Runner) -> None:
    text = """
    pub entry main<B: Dim, H: Dim, Q: Dim, K: Dim, D: Dim>(
        q: Tensor[B, H, Q, D; f32], k: Tensor[B, H, K, D; f32], v: Tensor[B, H, K, D; f32],
        mask: Tensor[Q, K; bool]
    ) -> Tensor[B, Q, H * D; f32]
    where K > 0 {
        let s[b, h, i, j] = sum[d] q[b, h, i, d] * k[b, h, j, d]
        let masked[b, h, i, j] = select(mask[i, j], s[b, h, i, j] * rsqrt(cast<f32>(D)), -1e30)
        let top[b, h, i] = max[j] masked[b, h, i, j]
        let e[b, h, i, j] = exp(masked[b, h, i, j] - top[b, h, i])
        let z[b, h, i] = sum[j] e[b, h, i, j]
        let o[b, i, h, d] = sum[j] e[b, h, i, j] / z[b, h, i] * v[b, h, j, d]
        return reshape(o, [B, Q, H * D])
    }
    """
    q, k, v = floats(2, 2, 3, 4), floats(2, 2, 5, 4, seed=1), floats(2, 2, 5, 4, seed=2)
    mask = np.random.default_rng(3).random((3, 5)) < 0.6
    mask[0] = False  # a row that sees nothing takes the plain mean
    s = np.where(mask, q @ k.swapaxes(2, 3) / 2, -1e30)
    e = np.exp(s - s.max(-1, keepdims=True))
    o = (e / e.sum(-1, keepdims=True)) @ v
    same(
        run(text, [q, k, v, mask]),
        o.transpose(0, 2, 1, 3).reshape(2, 3, 8).astype(np.float32),
        1e-5,
    )


def test_a_convolution_by_positions(run: Runner) -> None:
    text = """
    pub entry main<N: Dim, C: Dim, W: Dim>(x: Tensor[N + W - 1, C; f32], taps: Tensor[W, C; f32])
        -> Tensor[N, C; f32]
    where W > 0 {
        let at = iota(N)
        let off = iota(W)
        let y[n, c] = sum[w] x[at[n] + off[w], c] * taps[w, c]
        return y
    }
    """
    x, taps = floats(7, 2), floats(3, 2, seed=1)
    want = sum(x[w : w + 5] * taps[w] for w in range(3))
    same(run(text, [x, taps], sizes={"N": 5, "W": 3}), want, 1e-5)
    same(run(text, [x, taps]), want, 1e-5)


@pytest.mark.parametrize("bad", [-1, 6])
def test_a_gather_out_of_range_never_reads_outside(run: Runner, bad: int) -> None:
    """An error where it is seen, else some value of the table."""
    text = """
    pub entry main<P: Dim, N: Dim>(table: Tensor[P; f32], ids: Tensor[N; i32]) -> Tensor[N; f32] {
        let shifted = ids * 1
        let y[n] = table[shifted[n]]
        return y
    }
    """
    table = floats(6)
    try:
        got = run(text, [table, np.array([0, bad], np.int32)])
    except Exception as error:
        assert "6" in str(error) or "range" in str(error) or "bounds" in str(error)
    else:
        assert got[1] in table
