"""Linear layers, embeddings, norms, activations and softmax, against NumPy in f64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from linnet.ir.evaluate import Evaluator

from .std_support import Array, Run

bf16 = ml_dtypes.bfloat16
DTYPES = [np.float32, bf16]
SHAPES = [(), (1,), (0,), (3, 2)]


def draw(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def close(got: Array, want: Array, dtype: Any) -> None:
    assert got.shape == want.shape and got.dtype == np.dtype(dtype)
    tolerance = 2e-6 if dtype is np.float32 else 1e-2
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


def wide(x: Array) -> Array:
    return x.astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("inner", "outer"), [(5, 4), (1, 1), (0, 3), (3, 0)])
def test_linear(run: Run, shape: tuple[int, ...], inner: int, outer: int, dtype: Any) -> None:
    x, weight = draw(*shape, inner, dtype=dtype), draw(outer, inner, dtype=dtype, seed=1)
    bias = draw(outer, dtype=dtype, seed=2)
    product = wide(x) @ wide(weight).T
    close(run("std.nn.linear::linear", x, weight), product, dtype)
    close(run("std.nn.linear::linear", x, weight, bias), product + wide(bias), dtype)


def test_linear_rounds_once(run: Run) -> None:
    """In bf16 256 + 1 is 256; in f32 the ones add up."""
    x, weight = np.ones((1, 3), bf16), np.array([[256, 1, 1]], bf16)
    assert float(run("std.nn.linear::linear", x, weight)[0, 0]) == 258
    bias = np.array([2], bf16)
    assert float(run("std.nn.linear::linear", x, weight, bias)[0, 0]) == 260


@pytest.mark.parametrize("shape", SHAPES)
def test_embedding(run: Run, shape: tuple[int, ...]) -> None:
    table = draw(6, 3)
    ids = np.random.default_rng(3).integers(0, 6, shape).astype(np.int32)
    assert run("std.nn.embedding::embedding", ids, table).tolist() == table[ids].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_norms(run: Run, shape: tuple[int, ...], dtype: Any, eps: float) -> None:
    x, weight, bias = (draw(*s, 4, dtype=dtype, seed=i) for i, s in enumerate((shape, (), ())))
    e = float(np.float32(eps))
    rms = wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + e)
    close(run("std.nn.norm::rms_norm", x, weight, eps), rms * wide(weight), dtype)
    centred = wide(x) - wide(x).mean(-1, keepdims=True)
    unit = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + e)
    scaled = unit * wide(weight)
    close(run("std.nn.norm::layer_norm", x, weight, None, eps), scaled, dtype)
    if dtype is np.float32:
        close(run("std.nn.norm::layer_norm", x, weight, bias, eps), scaled + wide(bias), dtype)


def test_rms_norm_rounds_before_it_scales(run: Run) -> None:
    x, weight = draw(8, 16, dtype=bf16), draw(16, dtype=bf16, seed=1)
    x32 = x.astype(np.float32)
    unit = (x32 / np.sqrt((x32**2).mean(-1, keepdims=True) + np.float32(1e-5))).astype(bf16)
    same = run("std.nn.norm::rms_norm", x, weight) == unit * weight
    assert same.mean() > 0.98  # the order inside the mean is free


FORMULAS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "sigmoid": lambda x: 0.5 * (1 + math.tanh(x / 2)),
    "silu": lambda x: x * 0.5 * (1 + math.tanh(x / 2)),
    "gelu": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_activations(run: Run, name: str, dtype: Any) -> None:
    x = np.concatenate([draw(200) * 4, [0, -0.0, 100, -100, 1000, -1000]]).astype(dtype)
    want = np.array([FORMULAS[name](float(v)) for v in x])
    got = run(f"std.nn.activations::{name}", x)
    close(got, want, dtype)
    for shape in ((), (0,), (2, 1)):
        assert run(f"std.nn.activations::{name}", np.ones(shape, dtype)).shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 7])
def test_softmax(run: Run, shape: tuple[int, ...], count: int, dtype: Any) -> None:
    x = (draw(*shape, count) * 30).astype(dtype)
    powers = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
    close(run("std.nn.softmax::softmax", x), powers / powers.sum(-1, keepdims=True), dtype)


@pytest.mark.parametrize("level", [-1e30, 1e30, 0.0])
def test_softmax_of_equal_values_is_even(run: Run, level: float) -> None:
    x = np.full((2, 4), level, np.float32)
    assert run("std.nn.softmax::softmax", x).tolist() == [[0.25] * 4] * 2


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_gradient_clause(evaluator: Evaluator, run: Run, name: str) -> None:
    """Against differences of the formula, and finite where the body's own gradient isn't."""
    op = f"std.nn.activations::{name}"
    x = np.array([-200, -20, -3, -0.5, 0, 0.5, 3, 20, 200], np.float32)
    dy = draw(x.size, seed=1)
    (dx,) = evaluator.gradient(op, [x], run(op, x), dy)
    h = 1e-5
    slopes = [(FORMULAS[name](float(v) + h) - FORMULAS[name](float(v) - h)) / (2 * h) for v in x]
    np.testing.assert_allclose(dx, dy * np.array(slopes), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["all_reduce", "shared"])
def test_collectives_on_one_device(evaluator: Evaluator, run: Run, name: str) -> None:
    x, dy = draw(3, 2), draw(3, 2, seed=1)
    op = f"std.nn.parallel::{name}"
    assert run(op, x).tolist() == x.tolist()
    assert evaluator.gradient(op, [x], x, dy)[0].tolist() == dy.tolist()


@pytest.mark.parametrize("shards", [0, 1, 3])
def test_all_gather_on_one_device(run: Run, shards: int) -> None:
    x = draw(2, 5)
    got = run("std.nn.parallel::all_gather", x, Shards=shards)
    assert got.tolist() == np.tile(x, (1, shards)).tolist()


def test_argmax(run: Run) -> None:
    x = np.array([[1, 3, 3, 2], [-5, -7, -5, -6], [0, 0, 0, 0]], np.float32)
    got = run("std.nn.decoding::argmax", x)
    assert got.dtype == np.int32 and got.tolist() == [1, 0, 0]
    assert int(run("std.nn.decoding::argmax", x[0])) == 1
    x[1, 2] = np.nan
    x[2, 3] = np.inf
    assert run("std.nn.decoding::argmax", x).tolist() == [1, 2, 3]
    assert run("std.nn.decoding::argmax", np.zeros((0, 3), np.float32)).shape == (0,)
