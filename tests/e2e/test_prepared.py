"""Work that depends on no input, asked for in work that depends on none, and on its own."""

from __future__ import annotations

import numpy as np

from .programs import Runner, same, values

NESTED = """
fn ok() -> Tensor[2; f32] {
    let z = iota<i32>(2) * 2
    let t = cos(cast<f32>(iota<i32>(3)))
    let y[i] = exp(t[z[i]])
    return y
}
fn scaled<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] { return x * ok()[1] }
pub block Model {
    param rate: Tensor[2; f32]
    pub entry main(x: Tensor[2; f32], on: bool) -> Tensor[2; f32] {
        let table = exp(rate) + ok()
        let both = if on { sin(ok() + 1.0) } else { ok() }
        return scaled(x) + table + both + sqrt(ok())
    }
    pub entry once(x: Tensor[2; f32]) -> Tensor[2; f32] { return x + ok() }
}
"""
CHAIN = """
fn step(t: Tensor[2; f32], at: Tensor[2; i32]) -> Tensor[2; f32] {{
    let m[a] = cos(t[at[a]])
    return m
}}
pub entry main(x: Tensor[2; f32]) -> Tensor[2; f32] {{
    let at = 1 - iota<i32>(2)
    var t = cast<f32>(at)
    var y = x
{0}
    return y
}}
"""


def ok() -> np.ndarray:
    return np.exp(np.cos(np.array([0, 2], np.float32)))


def test_what_is_prepared_asks_for_what_is_prepared(run: Runner) -> None:
    x, rate = np.array([1, 2], np.float32), np.array([0.5, -0.5], np.float32)
    model = run.load(NESTED, weights={"rate": rate}, root="Model")
    same(values(model.run_entry("once", [x])), x + ok())
    for on, other in ((True, np.sin(ok() + 1)), (False, ok())):
        want = x * ok()[1] + np.exp(rate) + ok() + other + np.sqrt(ok())
        same(values(model.run_entry("main", [x, on])), want, 1e-5)


def test_a_chain_of_what_may_fail(run: Runner) -> None:
    x, t = np.array([0.25, 2], np.float32), np.array([1, 0], np.float32)
    got = run(CHAIN.format("    t = step(t, at)\n    y = sin(y) + t\n" * 12), [x])
    for _ in range(12):
        t = np.cos(t[::-1])
        x = np.sin(x) + t
    same(got, x, 1e-5)
