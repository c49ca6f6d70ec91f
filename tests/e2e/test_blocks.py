"""Parameters, optional parts, arrays of blocks and state, against hand-written NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .programs import Runner, floats, same, values

NETWORK = """
use std.nn.linear::{Linear}
pub block Gate<H: Dim> {
    param scale: Tensor[H; f32]? = none
    buffer mean: Tensor[H; f32]
    sub inner: Linear<H, H, f32>
    pub fn forward<*S: Shape>(x: Tensor[*S, H; f32]) -> Tensor[*S, H; f32] {
        let y = inner.forward(x - mean)
        return match scale { some(s) => y * s, none => y }
    }
}
pub block Net<H: Dim, Layers: Dim> {
    sub layers: [Gate<H>; Layers]
    sub last: Gate<H>? = none
    pub entry main<B: Dim>(x: Tensor[B, H; f32]) -> Tensor[B, H; f32] {
        var y = x
        static for layer in layers {
            y = y + layer.forward(y)
        }
        return match last { some(l) => l.forward(y), none => y }
    }
    pub entry first(x: Tensor[H; f32]) -> Tensor[H; f32]
    where Layers > 0, H > 0 {
        return layers[0].forward(x) + layers[0].inner.weight[0]
    }
}
"""


def gate(w: dict[str, np.ndarray], path: str, x: np.ndarray) -> np.ndarray:
    y = (x - w[f"{path}.mean"]) @ w[f"{path}.inner.weight"].T
    if f"{path}.inner.bias" in w:
        y = y + w[f"{path}.inner.bias"]
    return y * w[f"{path}.scale"] if f"{path}.scale" in w else y


def network_weights(layers: int) -> dict[str, np.ndarray]:
    made = {}
    for k in range(layers):
        made[f"layers.{k}.mean"] = floats(3, seed=10 * k)
        made[f"layers.{k}.inner.weight"] = floats(3, 3, seed=10 * k + 1)
        if k % 2:  # unlike neighbours: the loop over the array has to tell them apart
            made[f"layers.{k}.scale"] = floats(3, seed=10 * k + 2)
        if k == 2:
            made[f"layers.{k}.inner.bias"] = floats(3, seed=10 * k + 3)
    return made


@pytest.mark.parametrize("layers", [0, 1, 4])
@pytest.mark.parametrize("last", [False, True])
def test_optional_parts_and_unlike_layers(run: Runner, layers: int, last: bool) -> None:
    w = network_weights(layers)
    if last:
        w["last.mean"], w["last.inner.weight"] = floats(3, seed=90), floats(3, 3, seed=91)
    model = run.load(NETWORK, {"H": 3, "Layers": layers}, w, root="Net")
    x = floats(2, 3, seed=99)
    want = x
    for k in range(layers):
        want = want + gate(w, f"layers.{k}", want)
    want = gate(w, "last", want) if last else want
    same(values(model.run_entry("main", [x])), want, 1e-4)
    if layers:
        first = gate(w, "layers.0", x[0]) + w["layers.0.inner.weight"][0]
        same(values(model.run_entry("first", [x[0]])), first, 1e-4)


COUNTER = """
use std.nn.cache::{write_at}
pub block Ring<D: Dim, Size: Dim>
where Size > 0 {
    state rows: Tensor[1, 1, Size, D; f32]
    state count: i32
    pub fn push(x: Tensor[D; f32]) -> i32 {
        rows = write_at(rows, reshape(x, [1, 1, 1, D]), count % Size)
        count = count + 1
        return count
    }
}
pub block Main<D: Dim = 2, Size: Dim = 3> {
    sub ring: Ring<D, 3>
    state total: Tensor[D; f32]
    state flags: Tensor[3; bool]
    pub entry push(x: Tensor[D; f32]) -> (i32, Tensor[3, D; f32]) {
        let n = ring.push(x)
        total = total + x
        return (n, ring.rows[0, 0])
    }
    pub entry push_all<N: Dim>(x: Tensor[N, D; f32]) -> Tensor[N, 3, D; f32] {
        let seen = for n in 0..N {
            let _ = ring.push(x[n, :])
            total = total + x[n, :]
            yield ring.rows[0, 0]
        }
        return seen
    }
    pub entry swap() -> (Tensor[D; f32], Tensor[D; f32]) {
        let old = total
        total = total * 2
        let middle = total
        total = -old
        flags = !=0(flags)
        return (old, middle)
    }
    pub entry before_and_after(x: Tensor[D; f32], at: i32)
        -> (Tensor[D; f32], Tensor[D; f32], Tensor[D; f32]) {
        let known = ring.rows[0, 0, 0]
        let asked = ring.rows[0, 0, at]
        let _ = ring.push(x)
        return (known, asked, ring.rows[0, 0, at] - asked)
    }
    pub entry read() -> (Tensor[D; f32], i32, Tensor[3; bool]) {
        return (total, ring.count, flags)
    }
}
""".replace("!=0(flags)", "flags == fill<bool>([3], false)")


def test_weights_say_which_optional_parts_there_are(run: Runner) -> None:
    """`present` is for a model without them, and is not passed over beside them."""
    generics: dict[str, int | str] = {"H": 4, "Layers": 2}
    given = {"present": ["layers.1.scale"]}
    assert "layers.1.scale" in _paths(run.load(NETWORK, generics, root="Net", **given))
    with pytest.raises(ValueError, match="`present` is for a model without weights"):
        run.load(NETWORK, generics, network_weights(2), root="Net", **given)


def _paths(model: Any) -> list[str]:
    return list(model.state_dict() if hasattr(model, "state_dict") else model.parameters)


def test_state_is_kept_reset_and_seen_in_program_order(run: Runner) -> None:
    model = run.load(COUNTER, root="Main")
    assert model.state_paths() == ["ring.rows", "ring.count", "total", "flags"]
    rows, total = np.zeros((3, 2), np.float32), np.zeros(2, np.float32)
    kept = []
    for n in range(5):
        x = floats(2, seed=n)
        rows[n % 3] = x
        total = total + x
        got = model.run_entry("push", [x])
        kept.append((got, (n + 1, rows.copy())))
    for got, want in kept:  # results are no views of what later calls write
        same(values(got), want)
    same(values(model.run_entry("swap")), (total, total * 2))
    same(values(model.run_entry("read")), (-total, 5, np.ones(3, bool)))
    model.reset_state()
    same(values(model.run_entry("read")), (total * 0, 0, np.zeros(3, bool)))


def test_state_written_in_a_loop_is_snapshotted_by_yield(run: Runner) -> None:
    model = run.load(COUNTER, root="Main")
    x = floats(5, 2)
    rows, seen = np.zeros((3, 2), np.float32), []
    for n in range(5):
        rows[n % 3] = x[n]
        seen.append(rows.copy())
    same(values(model.run_entry("push_all", [x])), np.stack(seen))
    same(values(model.run_entry("push_all", [x[:0]])), np.zeros((0, 3, 2), np.float32))
    same(values(model.run_entry("read"))[1], 5)


def test_a_row_read_before_a_write_keeps_its_values(run: Runner) -> None:
    model = run.load(COUNTER, root="Main")
    x = floats(5, 2)
    for n in range(3):
        model.run_entry("push", [x[n]])
    for n in (3, 4):
        got = values(model.run_entry("before_and_after", [x[n], n - 3]))
        same(got, (x[3 * (n == 4)], x[n - 3], x[n] - x[n - 3]))
