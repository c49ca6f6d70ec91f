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
