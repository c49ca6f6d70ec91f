"""The largest and the smallest of no elements have no value, and no backend makes one up."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from linnet.backends.errors import InputError, RunError

from .programs import Runner, same, values

NO_VALUE = "no elements has no value"
FAILS = (InputError, RunError)
LARGEST = """
pub entry main<M: Dim, K: Dim, N: Dim>(x: Tensor[M, K, N; {0}])
    -> (Tensor[N; {0}], Tensor[M; {0}]) {{
    let over[n] = max[m, k] x[m, k, n]
    let under[m] = min[k, n] x[m, k, n]
    return (over, under)
}}
"""
CHOSEN = """
use std.nn.decoding::{argmax}
pub entry main<S: Dim, N: Dim>(x: Tensor[S, N; f32]) -> Tensor[S; i32] { return argmax(x) }
"""
INSIDE = """
pub entry main<K: Dim>(x: Tensor[K; f32], turns: i32, by: i32) -> (f32, i32) {
    var best: f32 = 0.0
    var turn: i32 = 0
    while turn < turns {
        best = best + (max[k] x[k])
        turn = turn + 1
    }
    let share = if turns == 1 { 12 / by } else { 0 }
    return (best, share)
}
"""
FIXED = """
pub block Model<K: Dim> {
    param w: Tensor[2, K; f32]
    param at: Tensor[2; i32]
    pub entry main(x: Tensor[2; f32], on: bool, turns: i32) -> Tensor[2; f32] {
        let chosen = if on { peaks(w) } else { x }
        let table = if on { peaks(fill<f32>([2, K], 0.5)) } else { x }
        let looked = if on { looks(w, at) } else { x }
        let divided = if on { shares(at) } else { x }
        var y = chosen + table + looked + divided
        for i in 0..turns { y = y + peaks(w) }
        return y
    }
}
fn peaks<A: Dim, K: Dim>(w: Tensor[A, K; f32]) -> Tensor[A; f32] {
    let m[a] = max[k] exp(w[a, k])
    return m
}
fn looks<K: Dim>(w: Tensor[2, K; f32], at: Tensor[2; i32]) -> Tensor[2; f32] {
    let m[a] = exp(w[a, at[a]])
    return m
}
fn shares(at: Tensor[2; i32]) -> Tensor[2; f32] {
    return exp(cast<f32>(12 / at))
}
"""
SHARED = """
pub block Model {
    param w: Tensor[2, 3; f32]
    param at: Tensor[2; i32]
    pub entry main(x: Tensor[2; f32], turns: i32) -> Tensor[2; f32] {
        let e = exp(w)
        var y = x + e[:, 0]
        for i in 0..turns { y = y + looks(e, at) }
        return y
    }
}
fn looks(w: Tensor[2, 3; f32], at: Tensor[2; i32]) -> Tensor[2; f32] {
    let m[a] = exp(w[a, at[a]])
    return m
}
"""
DIVIDED = """
pub entry main(x: Tensor[2; f32], on: bool) -> Tensor[2; f32] {
    let zero = iota<i32>(2) * 0
    return if on { x + exp(cast<f32>(7 / zero)) + cast<f32>(cast<i32>(x) % zero) } else { x }
}
pub entry always(x: Tensor[2; f32]) -> Tensor[2; f32] {
    return x + exp(cast<f32>(7 / fill<i32>([2], 0)))
}
"""
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i64": np.int64,
          "u8": np.uint8, "u64": np.uint64}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_elements(run: Runner, dtype: str) -> None:
    model, kind = run.load(LARGEST.format(dtype)), DTYPES[dtype]
    given = np.array([[[1, 7], [5, 2]], [[3, 4], [0, 9]]]).astype(kind)
    plain = np.float32 if dtype == "bf16" else kind
    same(values(model.run_entry("main", [given])), (given.max((0, 1)).astype(plain),
                                                    given.min((1, 2)).astype(plain)))  # fmt: skip
    for shape in ((0, 2, 0), (0, 0, 0)):
        got = values(model.run_entry("main", [np.zeros(shape, kind)]))
        assert [result.shape for result in got] == [(0,), (0,)]
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0), (2, 0, 0)):
        with pytest.raises(FAILS, match=NO_VALUE):
            model.run_entry("main", [np.zeros(shape, kind)])


def test_the_place_of_no_elements(run: Runner) -> None:
    model = run.load(CHOSEN)
    given = np.array([[1, 3, 3], [2, 1, 0]], np.float32)
    assert values(model.run_entry("main", [given])).tolist() == [1, 0]
    assert values(model.run_entry("main", [np.zeros((0, 0), np.float32)])).shape == (0,)
    with pytest.raises(FAILS, match=NO_VALUE):
        model.run_entry("main", [np.zeros((2, 0), np.float32)])


def test_what_fails_in_a_branch_or_a_loop(run: Runner) -> None:
    if run.backend.startswith("jax"):
        pytest.skip("what runs in a loop or a branch is traced before it is known whether it will")
    model = run.load(INSIDE)
    none, some = np.zeros(0, np.float32), np.array([2, 5], np.float32)
    assert values(model.run_entry("main", [some, 2, 0])) == (10.0, 0)
    assert values(model.run_entry("main", [none, 0, 0])) == (0.0, 0)  # no turn is taken
    with pytest.raises(FAILS, match=NO_VALUE):
        model.run_entry("main", [none, 2, 3])
    with pytest.raises(FAILS, match=r"division by zero|divided by it") as caught:
        model.run_entry("main", [some, 1, 0])
    assert ".cc" not in str(caught.value)  # no file of the runtime's own


def test_what_depends_on_no_input_fails_only_where_it_is_asked_for(run: Runner) -> None:
    """It is made once for a model, but not for a branch or a loop that no call enters."""
    if run.backend.startswith("jax"):
        pytest.skip("shapes are known, and refused, before it is known what will run")
    weights = {"w": np.zeros((2, 0), np.float32), "at": np.array([0, 9], np.int32)}
    model = run.load(FIXED, {"K": 0}, weights)
    x = np.array([1, 2], np.float32)
    same(values(model.run_entry("main", [x, False, 0])), 4 * x)
    with pytest.raises(FAILS):
        model.run_entry("main", [x, True, 0])
    with pytest.raises(FAILS, match=NO_VALUE):
        model.run_entry("main", [x, False, 1])


def test_what_may_fail_is_made_apart_from_what_it_shares_work_with(run: Runner) -> None:
    weights = {"w": np.zeros((2, 3), np.float32), "at": np.array([0, 9], np.int32)}
    x = np.array([1, 2], np.float32)
    same(values(run.load(SHARED, {}, weights).run_entry("main", [x, 0])), x + 1)
    model = run.load(SHARED, {}, {**weights, "at": np.array([0, 2], np.int32)})
    same(values(model.run_entry("main", [x, 2])), x + 1 + 2 * np.exp(np.float32(1)))


def test_a_division_by_a_constant_0_fails_only_where_it_is_asked_for(run: Runner) -> None:
    model, x = run.load(DIVIDED), np.array([1, 2], np.float32)
    assert values(model.run_entry("main", [x, False])).tolist() == [1, 2]
    with pytest.raises(RunError, match=r"(division|divided) by zero.*program.linnet:[78]"):
        model.run_entry("always", [x])
    if not run.backend.startswith("jax"):  # its code cannot raise
        with pytest.raises(RunError, match=r"division by zero|divided by zero"):
            model.run_entry("main", [x, True])
