"""Literals, casts, operators, slices and the prelude, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ..matrix.backends import to_numpy
from .programs import Runner, floats, same


def test_whole_numbers_divide_toward_zero(run: Runner) -> None:
    text = """
    pub entry main<N: Dim>(a: Tensor[N; i32], b: Tensor[N; i32])
        -> (Tensor[N; i32], Tensor[N; i32]) {
        return (a / b, a % b)
    }
    """
    a = np.array([7, -7, 7, -7, 0, -(2**31), 9], np.int32)
    b = np.array([2, 2, -2, -2, 5, 7, -10], np.int32)
    quotient = np.trunc(a / b).astype(np.int32)
    same(run(text, [a, b]), (quotient, a - b * quotient))


def test_arrays_of_every_layout(run: Runner) -> None:
    text = """
    pub entry main<N: Dim, M: Dim>(x: Tensor[N, M; f32], u: Tensor[N; u64], s: Tensor[N; i64])
        -> (Tensor[N, M; f32], Tensor[N; u64], Tensor[N; i64]) {
        return (x + 1.0, u + 1, s + 1)
    }
    """
    for n in (1, 3):
        x = floats(n, 2)[::-1, ::-1]
        u, s = np.arange(n, dtype=np.ulonglong)[::-1], np.arange(n, dtype=np.longlong)[::-1]
        want = (x + 1, (u + 1).astype(np.uint64), (s + 1).astype(np.int64))
        same(run(text, [x, u, s]), want)


def test_scalar_arithmetic_on_the_host(run: Runner) -> None:
    text = """
    pub entry main(a: i32, b: i32) -> (i32, i32, i64, bool) {
        return (a / b, a % b, cast<i64>(a) * 1_000_000_000, a < b && !(a == b) || false)
    }
    """
    same(run(text, [-7, 2]), (-3, -1, -7_000_000_000, True))
    same(run(text, [7, -2]), (-3, 1, 7_000_000_000, False))


def test_scalars_wrap_at_their_width(run: Runner) -> None:
    text = """
    pub entry main(a: i32, b: u8) -> (i32, u8, u32, i8) {
        return (a + 1, b + 250, cast<u32>(a) * 3, cast<i8>(b))
    }
    """
    same(run(text, [2**31 - 1, 200]), (-(2**31), 194, (2**31 - 1) * 3 % 2**32, -56))


def test_unsigned_and_signed_shifts(run: Runner) -> None:
    text = """
    pub entry main<N: Dim>(u: Tensor[N; u32], s: Tensor[N; i32])
        -> (Tensor[N; u32], Tensor[N; i32], Tensor[N; u32], Tensor[N; u32])
    {
        return (shr(u, 3), shr(s, 3), shl(u, 5), u ^ shr(u, 16) | 1 & u)
    }
    """
    u = np.array([0xFFFFFFFF, 0x80000000, 5, 0], np.uint32)
    s = np.array([-1, -(2**31), 5, -9], np.int32)
    want = (u >> 3, s >> 3, u << 5, u ^ (u >> 16) | (1 & u))
    # `&` binds tighter than `^`, and `^` tighter than `|`, as in NumPy.
    same(run(text, [u, s]), want)


def test_casts(run: Runner) -> None:
    text = """
    pub entry main<N: Dim>(x: Tensor[N; f32])
        -> (Tensor[N; i32], Tensor[N; bool], Tensor[N; f32], Tensor[N; f32], Tensor[N; f32])
    {
        let positive = x > 0.0
        return (cast<i32>(x), positive, cast<f32>(positive), cast<f32>(cast<bf16>(x)), floor(x))
    }
    """
    x = np.array([1.9, -1.9, 0.0, 3.14159, -0.5], np.float32)
    rounded = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    want = (np.trunc(x).astype(np.int32), x > 0, (x > 0).astype(np.float32), rounded, np.floor(x))
    same(run(text, [x]), want)


def test_constants_and_literals_take_the_dtype_around_them(run: Runner) -> None:
    text = """
    const SCALE: f32 = 2.5
    const SIZE = 3
    const ON = true
    pub entry main<H: Dim>(x: Tensor[H; f32], n: Tensor[SIZE; i8])
        -> (Tensor[H; f32], Tensor[SIZE; i8], f32, i64)
    {
        let flag = if ON { 1 } else { 2 }
        return (x * SCALE - H, max(n, -3) * SIZE, cast<f32>(H) / 4, flag + 0x10 + 0b101)
    }
    """
    x, n = floats(5), np.array([-9, 4, 2], np.int8)
    want = (x * np.float32(2.5) - 5, np.maximum(n, -3).astype(np.int8) * np.int8(3), 1.25, 22)
    same(run(text, [x, n]), want)


def test_slices(run: Runner) -> None:
    text = """
    pub entry main<N: Dim, M: Dim>(x: Tensor[N, M, 6; f32], at: i32)
        -> (Tensor[6; f32], Tensor[N, M, 3; f32], Tensor[N, M, 3; f32], Tensor[N, 2; f32],
            Tensor[M, 6; f32])
    where N > 1, M > 0 {
        return (x[1, 0], x[..., 0::2], x[:, :, 1:6:2], x[:, 0, 2:4], x[at])
    }
    """
    x = floats(2, 3, 6)
    want = (x[1, 0], x[..., 0::2], x[:, :, 1:6:2], x[:, 0, 2:4], x[1])
    same(run(text, [x, 1]), want)


def test_shapes(run: Runner) -> None:
    text = """
    pub entry main<B: Dim, H: Dim>(x: Tensor[B, H; f32]) -> Tensor[B + 2, 2, H / 2; f32]
    where H % 2 == 0 {
        let places = broadcast_to(cast<f32>(iota(H)), [1, H])
        let wide = concat(x, fill<f32>([1, H], 0.5), places, axis = 0)
        return permute(reshape(wide, [B + 2, H / 2, 2]), [0, 2, 1])
    }
    """
    x = floats(3, 4)
    wide = np.concatenate(
        [x, np.full((1, 4), 0.5, np.float32), np.arange(4, dtype=np.float32)[None]]
    )
    same(run(text, [x]), wide.reshape(5, 2, 2).transpose(0, 2, 1))
    same(run(text, [floats(0, 4)]), wide[3:].reshape(2, 2, 2).transpose(0, 2, 1))


def test_concat_counts_axes_from_the_end(run: Runner) -> None:
    text = """
    pub entry main<*S: Shape, H: Dim>(x: Tensor[*S, H; f32]) -> Tensor[*S, 2 * H; f32] {
        return concat(x, -x, axis = -1)
    }
    """
    for shape in ((3,), (2, 3), (2, 1, 3)):
        x = floats(*shape)
        same(run(text, [x]), np.concatenate([x, -x], -1))


def test_cumsum_and_iota(run: Runner) -> None:
    text = """
    pub entry main<N: Dim, M: Dim>(x: Tensor[N, M; i32]) -> (Tensor[N, M; i32], Tensor[M; i64]) {
        return (cumsum(x, axis = 0), cumsum(iota(M), axis = 0))
    }
    """
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    same(run(text, [x]), (np.cumsum(x, 0, dtype=np.int32), np.cumsum(np.arange(4))))


def test_select_and_elementwise_functions(run: Runner) -> None:
    text = """
    pub entry main<N: Dim, M: Dim>(x: Tensor[N, M; f32], c: Tensor[M; bool]) -> Tensor[N, M; f32] {
        let square = x * x
        let bell = exp(-abs(x)) + sqrt(square) * rsqrt(square + 1.0)
        let curve = bell + tanh(x) * sin(x) - cos(x) + erf(x)
        return select(c, min(curve, x), 1)
    }
    """
    from math import erf

    x, c = floats(3, 4), np.array([True, False, True, True])
    y = x.astype(np.float64)
    curve = np.exp(-abs(y)) + abs(y) / np.sqrt(y * y + 1) + np.tanh(y) * np.sin(y) - np.cos(y)
    curve = curve + np.vectorize(erf)(y)
    same(run(text, [x, c]), np.where(c, np.minimum(curve, y), 1).astype(np.float32), 2e-6)


def test_dtype_and_shape_generics_of_an_entry(run: Runner) -> None:
    text = """
    fn twice<*S: Shape, T: Numeric>(x: Tensor[*S; T]) -> Tensor[*S; T] {
        return x * 2
    }
    pub entry main<*S: Shape, T: Numeric>(x: Tensor[*S; T]) -> Tensor[*S; T] {
        return twice(x) + 1
    }
    """
    model = run.load(text)
    for dtype in (np.float32, np.int8, np.int64, ml_dtypes.bfloat16, np.float64):
        x = np.array([[1, 2], [3, 4]], dtype)
        got = to_numpy(model.run_entry("main", [x]))
        assert got.dtype == dtype and np.array_equal(got, [[3, 5], [7, 9]])
    assert int(to_numpy(model.run_entry("main", [np.array(3)]))) == 7


def test_defaults_and_named_arguments(run: Runner) -> None:
    text = """
    fn scaled<N: Dim>(x: Tensor[N; f32], by: f32 = 3.0, add: Tensor[N; f32]? = none)
        -> Tensor[N; f32] {
        return match add { some(a) => x * by + a, none => x * by }
    }
    pub entry main<N: Dim>(x: Tensor[N; f32]) -> (Tensor[N; f32], Tensor[N; f32], Tensor[N; f32]) {
        return (scaled(x), scaled(x, add = some(x)), scaled(by = 0.5, x = x))
    }
    """
    x = floats(4)
    same(run(text, [x]), (x * 3, x * 3 + x, x * np.float32(0.5)))


def test_a_generic_found_through_arithmetic(run: Runner) -> None:
    text = """
    fn halves<N: Dim>(x: Tensor[2 * N; f32]) -> (Tensor[N; f32], Tensor[N; f32]) {
        return (x[0:N], x[N:2 * N])
    }
    pub entry main<K: Dim>(x: Tensor[4 * K; f32]) -> Tensor[2 * K; f32] {
        let (low, high) = halves(x)
        return high - low
    }
    """
    x = floats(12)
    same(run(text, [x]), x[6:] - x[:6])
    with pytest.raises(Exception, match=r"axis 0 of `x` .* is 13, which `4 \* K` is for no size"):
        run(text, [floats(13)])
