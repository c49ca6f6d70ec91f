"""What is made of parameters alone is made once, and again when they change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import linnet.jax

from .support import checked, difference, to_numpy

TEXT = """
module m
pub block Layer<H: Dim> {
    param rate: Tensor[H; f32]
    state total: Tensor[H; f32]

    pub fn step(x: Tensor[H; f32]) -> Tensor[H; f32] {
        total = total * exp(-exp(rate)) + x
        return total
    }
}
pub block Model<H: Dim, Layers: Dim> {
    sub layers: [Layer<H>; Layers]

    pub entry step(x: Tensor[H; f32]) -> Tensor[H; f32] {
        var y = x
        static for layer in layers {
            y = layer.step(y)
        }
        return y
    }

    pub entry many<N: Dim>(x: Tensor[H; f32]) -> Tensor[N, H; f32] {
        let all = for i in 0..N {
            yield step(x)
        }
        return all
    }
}
"""
LAYERS, X = 3, np.array([1.0, -2.0], np.float32)


def rates(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {f"layers.{k}.rate": rng.normal(size=2).astype(np.float32) for k in range(LAYERS)}


def expected(weights: dict[str, Any], calls: int) -> Any:
    totals, rows = [np.zeros(2, np.float32)] * LAYERS, []
    for _ in range(calls):
        y = X
        for k in range(LAYERS):
            y = totals[k] = totals[k] * np.exp(-np.exp(weights[f"layers.{k}.rate"])) + y
        rows.append(y)
    return np.stack(rows)


@pytest.mark.parametrize("load", ["load_source_model", "load_model"])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_made_once_and_again_for_other_parameters(tmp_path: Path, load: str, numerics: str) -> None:
    model = getattr(linnet.jax, load)(
        checked(tmp_path, TEXT), root="Model", generics={"H": 2, "Layers": LAYERS},
        weights=rates(0), numerics=numerics,
    )  # fmt: skip
    for entry in ("step", "many"):
        assert ".kept_" in model.generated_source(entry), entry
    for seed in (0, 1):
        model.parameters = rates(seed)
        model.reset_state()
        want = expected(rates(seed), 3)
        rows = [to_numpy(model.run_entry("step", [X])) for _ in range(3)]
        assert difference(np.stack(rows), want) < 1e-5
        model.reset_state()
        first = to_numpy(model.run_entry("many", [X], {"N": 3}))
        trees = list(model._built.values())
        assert difference(first, want) < 1e-5
        model.run_entry("many", [X], {"N": 3})
        assert all(a is b for a, b in zip(trees, model._built.values(), strict=True))
        assert trees and len(trees) == len(model._built)


BOTH = """
module m
fn table() -> Tensor[2; f32] {
    let at = 1 - iota<i32>(2)
    let t = cos(cast<f32>(iota<i32>(2)))
    let y[i] = exp(t[at[i]])
    return y
}
pub op scaled(x: Tensor[2; f32]) -> Tensor[2; f32] {
    return x * table()
} grad(y, dy) {
    return dy * sin(table()) * 7.0
}
pub entry main(x: Tensor[2; f32]) -> Tensor[2; f32] {
    var y = scaled(x) + sqrt(table())
    for k in 0..2 { y = y + table() }
    return y
}
"""


@pytest.mark.parametrize("load", ["load_source", "load"])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_an_op_with_a_gradient_works_its_tables_out(
    tmp_path: Path, load: str, numerics: str
) -> None:
    entry = getattr(linnet.jax, load)(checked(tmp_path, BOTH), entry="main", numerics=numerics)
    table = np.exp(np.cos(np.array([1, 0], np.float32)))
    assert difference(to_numpy(entry(X)), X * table + np.sqrt(table) + 2 * table) < 1e-5
    slopes = jax.grad(lambda x: entry(x).sum())(jnp.asarray(X))
    assert difference(to_numpy(slopes), np.sin(table) * 7) < 1e-5


LAYERED = """
module m
fn table() -> Tensor[2; f32] { return exp(cos(cast<f32>(iota<i32>(2)))) }
op scaled(x: Tensor[2; f32]) -> Tensor[2; f32] { return x * table() }
block Layer {
    param w: Tensor[2; f32]
    pub fn go(x: Tensor[2; f32]) -> Tensor[2; f32] { return sin(scaled(x) + scaled(exp(w))) }
}
pub block Model {
    sub layers: [Layer; 2]
    pub entry main<K: Dim>(x: Tensor[2; f32], v: Tensor[K; f32]) -> Tensor[2; f32] {
        var y = x
        static for layer in layers { y = layer.go(y) }
        return y + (max[k] v[k])
    }
}
"""


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_tables_in_what_layers_keep(tmp_path: Path, numerics: str) -> None:
    """Python runs the layers: compiled functions, and XLA's options, are inside no other's."""
    weights = {f"layers.{k}.w": np.array([0.5, -0.5], np.float32) for k in range(2)}
    program, table = checked(tmp_path, LAYERED), np.exp(np.cos(np.arange(2, dtype=np.float32)))
    want = X
    for k in range(2):
        want = np.sin(want * table + np.exp(weights[f"layers.{k}.w"]) * table)
    model = linnet.jax.load_source_model(program, root="Model", weights=weights, numerics=numerics)
    v = np.array([1, 2, 3], np.float32)
    assert difference(to_numpy(model.run_entry("main", [X, v])), want + 3) < 1e-5
    for load in (linnet.jax.load_source, linnet.jax.load):
        entry = load(program, entry="main", root="Model", weights=weights, numerics=numerics)
        traced = jax.jit(lambda v, entry=entry: entry(X, v))
        with pytest.raises(linnet.jax.InputError, match="no elements"):
            traced(v[:0])
        for count in (2, 1):  # what the first trace put together is no part of it
            assert difference(to_numpy(traced(v[:count])), want + count) < 1e-5
        assert difference(to_numpy(entry(X, v)), want + 3) < 1e-5
