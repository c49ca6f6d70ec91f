"""Programs with blocks, state, branches and loops: machine code against the NumPy oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.ir.evaluate import Evaluator
from linnet.native import Model, RunError
from linnet.native.runtime.load import load

from ..torch.toy import GENERICS, TOY
from .support import Run, checked, difference, run_all

PROGRAM = """
module m
pub struct Pair { first: Tensor[3; f32], second: i32 }
pub enum Kind { Plus, Minus, Zero }

fn pick<N: Dim>(kind: Kind, x: Tensor[N; f32]) -> Tensor[N; f32] {
    return match kind {
        Kind.Plus => x,
        Kind.Minus => -x,
        _ => x * 0.0,
    }
}

pub entry cases<N: Dim>(x: Tensor[N; f32], n: i32) -> Tensor[N; f32] {
    let kind = if n > 0 { Kind.Plus } else { if n < 0 { Kind.Minus } else { Kind.Zero } }
    return pick(kind, x)
}

pub entry optional<N: Dim>(x: Tensor[N; f32], bias: Tensor[N; f32]? = none) -> Tensor[N; f32] {
    return match bias {
        some(b) => x + b,
        none => x * 2.0,
    }
}

pub entry swap<N: Dim>(x: Tensor[N; f32], y: Tensor[N; f32], turns: i32)
    -> (Tensor[N; f32], Tensor[N; f32]) {
    var a = x
    var b = y
    for i in 0..turns {
        let old = a
        a = b + cast<f32>(i)
        b = old
    }
    return (a, b)
}

pub entry stacked<N: Dim>(x: Tensor[N, 3; f32]) -> (Tensor[N, 3; f32], Pair) {
    var total = fill<f32>([3], 0.0)
    let rows = for n in 0..N {
        total = total + x[n, :]
        yield total
    }
    return (rows, Pair(first = total, second = cast<i32>(N)))
}

pub entry collatz(start: i64) -> i64 {
    var n = start
    var steps: i64 = 0
    while n > 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 }
        steps = steps + 1
    }
    return steps
}

pub entry divide<N: Dim>(x: Tensor[N; i32], y: Tensor[N; i32]) -> Tensor[N; i32] {
    return x / y
}

pub entry shifts<N: Dim>(x: Tensor[N; i32], by: Tensor[N; i32])
    -> (Tensor[N; i32], Tensor[N; i32]) {
    return (shl(x, by), shr(x, by))
}

pub entry narrow<N: Dim>(x: Tensor[N; f64]) -> (Tensor[N; i8], Tensor[N; u32], Tensor[N; i64]) {
    return (cast<i8>(x), cast<u32>(x), cast<i64>(x))
}

pub entry look<N: Dim, M: Dim>(table: Tensor[N, 2; f32], ids: Tensor[M; i32])
    -> Tensor[M, 2; f32] {
    let y[m, k] = table[ids[m], k]
    return y
}
"""


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


LEAST = -(2**31)
WILD = [0.0, -0.5, 1e30, -1e30, np.nan, np.inf, -np.inf, 127.9, -128.9, 2.0**63, 4294967296.0]
CALLS: list[tuple[str, list[Any]]] = [
    *(("cases", [f32(1, 2, 3), n]) for n in (2, -1, 0)),
    ("optional", [f32(1, 2)]), ("optional", [f32(1, 2), f32(5, 6)]),
    *(("swap", [f32(1, 2), f32(3, 4), n]) for n in (0, 1, 5, -3)),
    ("stacked", [np.arange(12, dtype=np.float32).reshape(4, 3)]),
    ("stacked", [np.zeros((0, 3), np.float32)]),
    ("collatz", [27]), ("collatz", [1]),
    ("divide", [i32(7, -7, LEAST), i32(2, 2, -1)]), ("divide", [i32(), i32()]),
    ("shifts", [i32(1, -1, 5, -8, 3), i32(31, 32, -1, 40, 2)]),
    ("narrow", [np.array(WILD)]),
    ("look", [np.arange(6, dtype=np.float32).reshape(3, 2), i32(2, 0)]),
    ("look", [np.zeros((0, 2), np.float32), i32()]),
]  # fmt: skip


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        return [each for item in value for each in flat(item)]
    return [value]


def test_programs_mean_what_the_oracle_says(tmp_path: Path) -> None:
    program = checked(tmp_path, PROGRAM)
    model = load(program, numerics="exact")
    runs = [Run(model, entry, inputs, {}) for entry, inputs in CALLS]
    for run, got in zip(runs, run_all(runs), strict=True):
        want = Evaluator(program).run(f"{program.root}::{run.entry}", run.inputs)
        assert not isinstance(got, Exception), (run.entry, got)
        for a, b in zip(flat(got), flat(want), strict=True):
            assert difference(a, b) == 0.0, (run.entry, run.inputs, a, b)


def test_what_has_no_meaning_is_an_error(tmp_path: Path) -> None:
    model = load(checked(tmp_path, PROGRAM), numerics="exact")
    model._bounds.check = lambda *_: None  # type: ignore[method-assign]
    runs = [
        Run(model, "divide", [i32(1, 2), i32(1, 0)], {}),
        Run(model, "look", [np.zeros((3, 2), np.float32), i32(0, 3)], {}),
        Run(model, "look", [np.zeros((3, 2), np.float32), i32(-1)], {}),
        Run(model, "look", [np.zeros((0, 2), np.float32), i32(0)], {}),
    ]
    messages = [str(error) for error in run_all(runs) if isinstance(error, RunError)]
    assert "an integer is divided by zero at" in messages[0]
    assert "index 3 is outside an axis of extent 3 at" in messages[1]
    assert "index -1 is outside" in messages[2]
    assert "index 0 is outside an axis of extent 0" in messages[3]
    assert len(messages) == 4


NO_KEYS = """
module m
use std.nn.attention::{attention, paged_attention, sink_attention}
pub entry run<K: Dim, P: Dim>(
    q: Tensor[2, 2, 5, 4; f32], k: Tensor[2, 2, K, 4; f32], mask: Tensor[2, 5, K; bool],
    token: Tensor[2, 2, 1, 4; f32], pool: Tensor[1, 2, 8, 4; f32], table: Tensor[2, P; i32],
    positions: Tensor[2; i32],
) -> (Tensor[2, 2, 5, 4; f32], Tensor[2, 2, 5, 4; f32], Tensor[2, 2, 1, 4; f32]) {
    let plain = attention(q, k, k, 0.5)
    let sunk = sink_attention(q, k, k, fill<f32>([2], 1.0), 0.5, mask)
    let paged = paged_attention<2, 2, 2, 8, P, 4, 4, f32>(
        token, pool, pool, table, positions, 0.5)
    return (plain, sunk, paged)
}
"""


def test_attention_without_keys_gives_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(checked(tmp_path, NO_KEYS), numerics="fast")
    given = [
        np.ones((2, 2, 5, 4), np.float32), np.ones((2, 2, 0, 4), np.float32),
        np.ones((2, 5, 0), np.bool_), np.ones((2, 2, 1, 4), np.float32),
        np.ones((1, 2, 8, 4), np.float32), np.ones((2, 0), np.int32), np.zeros(2, np.int32),
    ]  # fmt: skip
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 77, dtype))
    for result in model.run_entry("run", given):
        np.testing.assert_array_equal(result, np.zeros_like(result))


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Model:
    program = checked(tmp_path_factory.mktemp("toy"), TOY)
    weights: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for info in load(program, generics=GENERICS).binding.params:
        shape = [dim.constant for dim in info.type.dims]
        if info.path != "layers.1.gain" and "bias" not in info.path:
            weights[info.path] = rng.normal(size=shape).astype(np.float32)
    return load(program, generics=GENERICS, weights=weights, numerics="exact")


def twin(model: Model) -> Evaluator:
    program = model.binding.program
    params = model.parameters
    return Evaluator(
        program, root=model.binding.block, generics=model.binding.generics, params=params
    )


def test_a_model_with_state_agrees_with_the_oracle(toy: Model) -> None:
    oracle = twin(toy)
    tokens = i32(1, 2, 3, 4).reshape(2, 2)
    assert difference(toy(tokens), oracle.run(f"{toy.binding.block}.forward", [tokens])) < 1e-5
    toy.reset_state()
    for pos in range(3):
        step = [tokens[:, :1] + pos, pos]
        got, want = toy.run_entry("step", step), oracle.run(f"{toy.binding.block}.step", step)
        assert difference(got, want) < 1e-5
    got = toy.run_entry("count_down", [5, 9], {"N": 3})
    assert got[0].tolist() == [0, 0, 0] and int(got[1]) == 5
    for path in toy.state_paths():
        assert difference(toy.state(path), oracle.state[path]) < 1e-5


def test_one_source_serves_every_length(toy: Model) -> None:
    oracle = twin(toy)
    for shape in ((1, 1), (3, 5), (0, 2), (2, 0)):
        tokens = np.ones(shape, np.int32)
        got = toy(tokens)
        assert difference(got, oracle.run(f"{toy.binding.block}.forward", [tokens])) < 1e-5
    assert len([key for key in toy._loaded if key[0] == "forward"]) == 1
