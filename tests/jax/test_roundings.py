"""Under `exact` numerics each product is rounded before it is added to anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import linnet.jax
import linnet.torch
from linnet.ir import Program

from .support import checked, oracle, to_numpy

BODIES = {
    "added": "c * d + e",
    "taken": "c * d - e",
    "taken_from": "e - c * d",
    "negated": "-(c * d) + e",
    "squared": "c * c + e",
    "both": "c * d + d * e",
    "scaled": "2.5 * c + e",
    "moved": "reshape(permute(reshape(c * d, [2, 500]), [1, 0]), [1000]) + e",
    "spread": "reshape(broadcast_to(reshape(c[:10] * d[:10], [1, 10]), [100, 10]), [1000]) + e",
    "called": "product(c, d) + e",
    "there_and_back": "(c + 1024.0) - 1024.0",
    "scaled_twice": "c * 0.3 * 0.7",
    "divided_twice": "c / d / e",
    "root": "c / sqrt(abs(d))",
    "root_squared": "sqrt(abs(c)) * sqrt(abs(c))",
}
CASTS = {
    "narrow_product": "cast<f16>(cast<f32>(c) * cast<f32>(d)) + e",
    "narrow_sum": "cast<f16>(cast<f32>(c * d) + cast<f32>(e))",
}
ENTRIES = "".join(
    f"pub entry {name}<T: Float>(c: Tensor[1000; T], d: Tensor[1000; T], e: Tensor[1000; T])"
    f" -> Tensor[1000; T] {{ return {body} }}\n"
    for name, body in BODIES.items()
) + "".join(
    f"pub entry {name}(c: Tensor[1000; f16], d: Tensor[1000; f16], e: Tensor[1000; f16])"
    f" -> Tensor[1000; f16] {{ return {body} }}\n"
    for name, body in CASTS.items()
)
TEXT = f"""
module program
use std.nn.norm::{{layer_norm, rms_norm}}
fn product<N: Dim, T: Float>(a: Tensor[N; T], b: Tensor[N; T]) -> Tensor[N; T] {{ return a * b }}
{ENTRIES}
pub entry outer<T: Float>(x: Tensor[50, 20; T], w: Tensor[20; T], b: Tensor[50; T])
    -> Tensor[50, 20; T]
{{
    let y[i, k] = b[i] * w[k]
    return y + x
}}
pub entry narrowed(c: Tensor[1000; f32], d: Tensor[1000; f32]) -> (Tensor[1000; f32],
    Tensor[1000; f16])
{{
    let y = c * d + c
    return (y, cast<f16>(y))
}}
pub entry layer<T: Float>(x: Tensor[50, 20; T], w: Tensor[20; T], b: Tensor[20; T])
    -> Tensor[50, 20; T] {{ return layer_norm(x, w, some(b)) }}
pub entry rms<T: Float>(x: Tensor[50, 20; T], w: Tensor[20; T], b: Tensor[20; T])
    -> Tensor[50, 20; T] {{ return rms_norm(x, w) * w + b }}
"""
SHAPES = {
    **dict.fromkeys((*BODIES, *CASTS), ((1000,),) * 3),
    "outer": ((50, 20), (20,), (50,)),
    "layer": ((50, 20), (20,), (20,)),
    "rms": ((50, 20), (20,), (20,)),
}
LOADERS = [linnet.jax.load_source_model, linnet.jax.load_model]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return checked(tmp_path_factory.mktemp("roundings"), TEXT)


def drawn(shapes: Any, dtype: Any = np.float16) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("load", LOADERS)
def test_sums_of_f16_products_are_those_of_the_other_backends(program: Program, load: Any) -> None:
    made = load(program, numerics="exact")
    torch = linnet.torch.load(program, numerics="exact")
    for entry, shapes in SHAPES.items():
        inputs = drawn(shapes)
        got = to_numpy(made.run_entry(entry, inputs))
        assert np.array_equal(got, torch.run_entry(entry, inputs).numpy()), entry


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_wider_products(program: Program, dtype: Any) -> None:
    made = linnet.jax.load_source_model(program, numerics="exact")
    for entry in BODIES:
        inputs = drawn(SHAPES[entry], dtype)
        assert np.array_equal(made.run_entry(entry, inputs), oracle(program, entry, inputs)), entry


def test_a_sum_beside_a_narrower_copy(program: Program) -> None:
    """A conversion to `f16` in the same loop makes LLVM contract what it would not alone."""
    c, d = drawn(((1000,), (1000,)), np.float32)
    made = linnet.jax.load_source_model(program, numerics="exact")
    wide, narrow = to_numpy(made.run_entry("narrowed", [c, d]))
    assert np.array_equal(wide, c * d + c)
    assert np.array_equal(narrow, (c * d + c).astype(np.float16))


def test_slopes_go_through_rounded_products(program: Program) -> None:
    run = linnet.jax.load_source(program, entry="added", numerics="exact")
    c, d, e = drawn(SHAPES["added"])
    slopes = jax.grad(lambda c: run.apply({}, c, d, e).sum())(c)
    assert np.array_equal(slopes, d)


def test_only_what_may_meet_a_sum_is_marked(tmp_path: Path) -> None:
    text = """
module program
pub entry f<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] { return sqrt(x * x * x) * x + x }
"""
    made = linnet.jax.load_source_model(checked(tmp_path, text), numerics="exact")
    assert "return rounded(jnp.sqrt(x * x * x) * x) + x" in made.generated_source()
    fast = linnet.jax.load_source_model(checked(tmp_path, text))
    assert "rounded" not in fast.generated_source()
