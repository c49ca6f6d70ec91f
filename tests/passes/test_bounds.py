"""Requirements on an entry's integer inputs: found, said in its own names, and never false."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet
from linnet.dims import Dim
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError
from linnet.passes.bound import bind
from linnet.passes.bounding.pages import page_range
from linnet.passes.bounds import (
    Requirement,
    bound_requirements,
    input_requirements,
    violations,
)


def load(folder: Path, body: str) -> Program:
    path = folder / "m.linnet"
    path.write_text(f"module m\n{body}\n", encoding="utf-8")
    return linnet.load_program(path)


def entry_requirements(folder: Path, body: str) -> tuple[Requirement, ...]:
    program = load(folder, body)
    (entry,) = program.entries(None).values()
    return input_requirements(program.functions, entry)


def shown(requirements: tuple[Requirement, ...]) -> list[str]:
    return [str(requirement).replace("`", "") for requirement in requirements]


def test_an_index_made_of_an_input(tmp_path: Path) -> None:
    found = entry_requirements(
        tmp_path,
        """
        entry f<N: Dim, S: Dim>(table: Tensor[N; f32], pos: i32) -> Tensor[S; f32] {
            let rows[i] = cast<i64>(pos) + iota<i64>(S)[i]
            let y[i] = table[rows[i]]
            return y
        }
        """,
    )
    assert shown(found) == ["0 <= pos, pos + S - 1 < N"]
    (one,) = found
    sizes = {"N": 64, "S": 7}
    assert one.check({"pos": 57}, sizes) is None
    assert one.check({"pos": 64}, sizes) == (
        "`pos` + S - 1 is 70, past the last position of axis N (64)"
    )
    assert one.check({"pos": -1}, sizes) == "`pos` is -1, before the first position of axis N (64)"
    assert one.check({"pos": np.int32(64)}, {"N": 64, "S": 0}) is None
    assert one.check({}, sizes) is None
    assert one.check({"pos": 64}, {"N": 64}) is None
    assert one.names == {"pos"}


def test_elements_of_a_tensor(tmp_path: Path) -> None:
    (one,) = entry_requirements(
        tmp_path,
        """
        use std.nn.embedding::{embedding}
        entry f<B: Dim>(tokens: Tensor[B; i32], table: Tensor[10, 4; f32]) -> Tensor[B, 4; f32] {
            return embedding(tokens, table)
        }
        """,
    )
    assert one.check({"tokens": np.array([0, 9], np.int32)}, {"B": 2}) is None
    assert one.check({"tokens": np.array([0, 10], np.int32)}, {"B": 2}) == (
        "max(`tokens`) is 10, past the last position of an axis of 10"
    )
    assert one.check({"tokens": np.array([-3, 1], np.int32)}, {"B": 2}) == (
        "min(`tokens`) is -3, before the first position of an axis of 10"
    )
    assert one.check({"tokens": np.zeros(0, np.int32)}, {"B": 0}) is None


@pytest.mark.parametrize(
    "index",
    [
        "min(max(pos, 0), 3)",
        "select(pos < 4 && pos >= 0, pos, 0)",
        "select(flag, 0, 0)",
        "if pos >= 0 && pos < 4 { pos } else { 0 }",
        "pos - pos",
        "(pos % 4 + 4) % 4",
        "pos & 3",
        "cast<i32>(cast<f32>(pos) * 0.0)",
    ],
)
def test_guarded_indices_ask_nothing_false(tmp_path: Path, index: str) -> None:
    found = entry_requirements(
        tmp_path,
        f"""
        entry f(table: Tensor[4; f32], pos: i32, flag: bool) -> f32 {{
            return table[{index}]
        }}
        """,
    )
    for pos in (-100, -1, 0, 3, 4, 100):
        assert violations(found, {"pos": pos, "flag": True}, {}) == ()


def test_what_bounds_cannot_say_is_worked_out(tmp_path: Path) -> None:
    found = entry_requirements(
        tmp_path,
        """
        entry f<N: Dim>(
            table: Tensor[8; f32], a: Tensor[N; i32], b: Tensor[N; i32]
        ) -> Tensor[N; f32] {
            let y[i] = table[a[i] + b[i]]
            return y
        }
        """,
    )
    sizes = {"N": 2}
    a, b = np.array([7, 0], np.int32), np.array([0, 7], np.int32)
    assert violations(found, {"a": a, "b": b}, sizes) == ()
    assert violations(found, {"a": a, "b": b[::-1]}, sizes) == (
        "`a` and `b` give the index 14, past the last position of an axis of 8",
    )
    assert violations(found, {"a": a}, sizes) == ()


def test_conditions_on_inputs_guard_what_they_choose(tmp_path: Path) -> None:
    found = entry_requirements(
        tmp_path,
        """
        entry f(table: Tensor[4; f32], pos: i32, use_it: bool) -> f32 {
            return if use_it { table[pos] } else { 0.0 }
        }
        """,
    )
    assert violations(found, {"pos": 9, "use_it": False}, {}) == ()
    assert len(violations(found, {"pos": 9, "use_it": True}, {})) == 1


def test_conditions_that_the_inputs_do_not_decide_ask_nothing(tmp_path: Path) -> None:
    found = entry_requirements(
        tmp_path,
        """
        entry f(table: Tensor[4; f32], pos: i32) -> f32 {
            return if table[0] > 0.0 { table[pos] } else { 0.0 }
        }
        """,
    )
    assert violations(found, {"pos": 9}, {}) == ()


def test_loops(tmp_path: Path) -> None:
    """Every round of a `for`, with what it counts; the first of a `while`."""
    found = entry_requirements(
        tmp_path,
        """
        entry f<N: Dim, Steps: Dim>(table: Tensor[N; f32], pos: i32, at: i32, most: i32) -> f32 {
            var p = pos
            var total = 0.0
            for i in 0..Steps {
                total = total + cast<f64>(table[p]) + cast<f64>(table[cast<i64>(at) + i])
                p = p + 2
            }
            var count = 0
            while count < cast<i64>(most) {
                total = total + cast<f64>(table[count + cast<i64>(at) * 2])
                count = count + 1
            }
            return cast<f32>(total)
        }
        """,
    )
    assert shown(found) == [
        "0 <= pos, pos + 2 * Steps - 2 < N",
        "0 <= at, at + Steps - 1 < N",
        "0 <= 2 * at, 2 * at < N",
    ]
    sizes = {"N": 10, "Steps": 4}
    inputs = {"pos": 3, "at": 4, "most": 1}
    assert violations(found, inputs, sizes) == ()
    assert violations(found, {**inputs, "pos": 4}, sizes) == (
        "`pos` + 2 * Steps - 2 is 10, past the last position of axis N (10)",
    )
    assert len(violations(found, {**inputs, "at": 6}, sizes)) == 1
    assert violations(found, {**inputs, "at": 6, "most": 0}, sizes) == ()
    assert violations(found, {**inputs, "pos": 99}, {"N": 10, "Steps": 0}) == ()


def test_carried_values_that_change_otherwise_ask_of_the_first_round_alone(tmp_path: Path) -> None:
    found = entry_requirements(
        tmp_path,
        """
        entry f(table: Tensor[9; f32], pos: i32) -> f32 {
            var p = pos
            var total: f32 = 0.0
            static for i in 0..3 {
                total = total + table[p]
                p = p * p % 9
            }
            return total
        }
        """,
    )
    assert shown(found) == ["0 <= pos, pos < 9"]


CACHED = """
use std.nn.cache::{write_at, write_rows, write_slots, write_span, write_tokens}
pub block Cache<B: Dim, S: Dim, T: Float = f32> {
    state kv: Tensor[B, 1, S, 2; T]
    entry at(value: Tensor[B, 1, 1, 2; T], pos: i32) { kv = write_at(kv, value, pos) }
    entry span<N: Dim>(value: Tensor[B, 1, N, 2; T], pos: i32) {
        kv = write_span(kv, value, pos + 1)
    }
    entry clamped<N: Dim>(value: Tensor[B, 1, N, 2; T], pos: i32) {
        kv = write_span(kv, value, max(pos, 0))
    }
    entry rows(value: Tensor[B, 1, 1, 2; T], positions: Tensor[B; i32]) {
        kv = write_rows(kv, value, positions)
    }
    entry slots<M: Dim, N: Dim>(value: Tensor[M, 1, N, 2; T], slots: Tensor[M; i32]) {
        kv = write_slots(kv, value, slots, 0)
    }
    entry tokens<P: Dim>(value: Tensor[1, 1, P, 2; T], rows: Tensor[P; i32], at: Tensor[P; i32]) {
        kv = write_tokens(kv, value, rows, at)
    }
}
"""


def test_cache_writes(tmp_path: Path) -> None:
    binding = bind(load(tmp_path, CACHED), "Cache", {"B": 2, "S": 8})
    asked = {
        name: bound_requirements(binding, name) for name in binding.program.entries("m::Cache")
    }
    assert {name: shown(found) for name, found in asked.items()} == {
        "at": ["0 <= pos, pos < S"],
        "span": ["0 <= pos + 1, pos + N < S"],
        "clamped": ["0 <= index(pos) < S", "0 <= index(pos) < S"],
        "rows": ["0 <= min(positions), max(positions) < S"],
        "slots": ["0 <= min(slots), max(slots) < B"],
        "tokens": ["0 <= min(rows), max(rows) < B", "0 <= min(at), max(at) < S"],
    }
    assert violations(asked["at"], {"pos": 7}, {}) == ()
    assert violations(asked["at"], {"pos": 8}, {}) == (
        "`pos` is 8, past the last position of axis S (8)",
    )
    assert violations(asked["clamped"], {"pos": -5}, {"N": 8}) == ()
    assert violations(asked["clamped"], {"pos": 5}, {"N": 4}) == (
        "`pos` gives the index 8, past the last position of axis S (8)",
    )
    ids = np.array([0, 2, 1], np.int32)
    assert violations(asked["tokens"], {"rows": ids, "at": ids}, {"P": 3}) == (
        "max(`rows`) is 2, past the last position of axis B (2)",
    )


MODEL = """
use std.nn.cache::{write_at}
use std.nn.embedding::{Embedding}
pub block Layer<S: Dim>
where S > 0 {
    state kv: Tensor[1, 1, S, 2; f32]
    pub fn step(x: Tensor[1, 1, 1, 2; f32], pos: i32) -> Tensor[1, 1, 1, 2; f32] {
        kv = write_at(kv, x, pos)
        return kv[:, :, 0:1, :]
    }
}
pub block Model<S: Dim, Layers: Dim>
where S > 0 {
    sub embed: Embedding<5, 2, f32>
    sub layers: [Layer<S>; Layers]
    entry decode(token: Tensor[1, 1; i32], pos: i32) -> Tensor[1, 1, 1, 2; f32] {
        var x = reshape(embed.forward(token), [1, 1, 1, 2])
        static for layer in layers {
            x = layer.step(x, pos)
        }
        return x
    }
}
"""


def test_through_blocks_and_arrays_of_them(tmp_path: Path) -> None:
    binding = bind(load(tmp_path, MODEL), "Model", {"S": 4, "Layers": 3})
    asked = bound_requirements(binding, "decode")
    assert shown(asked) == ["0 <= min(token), max(token) < 5", "0 <= pos, pos < S"]
    token = np.array([[7]], np.int32)
    assert violations(asked, {"token": token, "pos": 4}, {}) == (
        "max(`token`) is 7, past the last position of an axis of 5",
        "`pos` is 4, past the last position of axis S (4)",
    )


def test_concatenations_ask_of_each_part(tmp_path: Path) -> None:
    found = entry_requirements(
        tmp_path,
        """
        entry f<P: Dim, Q: Dim>(
            table: Tensor[9; f32], a: Tensor[P; i32], b: Tensor[Q; i32]
        ) -> Tensor[P + Q + 9; f32] {
            let every = concat(a, b, iota<i32>(9), axis = 0)
            let y[i] = table[cast<i64>(every[i])]
            return y
        }
        """,
    )
    assert shown(found) == ["0 <= min(a), max(a) < 9", "0 <= min(b), max(b) < 9"]


def test_work_is_bounded(tmp_path: Path) -> None:
    """A tower of calls, each calling the one below twice."""
    tower = "\n".join(
        f"fn g{k}(p: i32) -> i32 {{ return g{k - 1}(g{k - 1}(p)) }}" for k in range(1, 40)
    )
    found = entry_requirements(
        tmp_path,
        f"""
        fn g0(p: i32) -> i32 {{ return p + 0 }}
        {tower}
        entry f(table: Tensor[4; f32], pos: i32) -> f32 {{ return table[pos] + table[g39(pos)] }}
        """,
    )
    assert len(found) <= 2


def test_page_ranges_agree_with_every_place_read() -> None:
    rng = np.random.default_rng(11)
    for _ in range(300):
        rows, pages, size, tokens = (int(n) for n in rng.integers(1, 4, 4))
        table = rng.integers(-2, 5, (rows, pages)).astype(np.int32)
        positions = rng.integers(-1, pages * size + 2, tokens).astype(np.int32)
        of = rng.integers(-1, rows + 1, tokens).astype(np.int32)
        places = [
            int(table[row, s // size]) * size + s % size
            for row, position in zip(of, positions, strict=True)
            if 0 <= row < rows
            for s in range(min(int(position) + 1, pages * size))
        ]
        low, high = page_range(table, positions, of, size)
        assert (low, high) == ((min(places), max(places)) if places else (0, 0))


def test_attention_over_pages(tmp_path: Path) -> None:
    program = load(
        tmp_path,
        """
        use std.nn.attention::{paged_attention}
        entry f<R: Dim, N: Dim, P: Dim>(
            q: Tensor[R, 2, 1, 4; f32],
            pool: Tensor[1, 1, N, 4; f32],
            table: Tensor[R, P; i32],
            positions: Tensor[R; i32],
        ) -> Tensor[R, 2, 1, 4; f32] {
            return paged_attention<R, 2, 1, N, P, 4, 4, f32>(
                q, pool, pool, table, positions, 0.5,
            )
        }
        """,
    )
    (entry,) = program.entries(None).values()
    asked = input_requirements(program.functions, entry)
    sizes = {"R": 2, "N": 16, "P": 2}
    table = np.array([[0, 3], [2, 99]], np.int32)
    inputs: dict[str, Any] = {"table": table, "positions": np.array([7, 3], np.int32)}
    assert violations(asked, inputs, sizes) == ()  # the unused entry 99 is never read
    inputs["positions"] = np.array([7, 4], np.int32)
    assert violations(asked, inputs, sizes) == (
        "`positions` and `table` give the index 396, past the last position of axis N (16)",
    )
    arrays = {
        "q": np.zeros((2, 2, 1, 4), np.float32),
        "pool": np.zeros((1, 1, 16, 4), np.float32),
        **inputs,
    }
    with pytest.raises(EvaluationError, match="index 396 is outside"):
        Evaluator(program).run(entry.name, arrays)
    assert isinstance(asked[0].extent, Dim)


@pytest.mark.parametrize(
    ("divisor", "asked"),
    [
        ("k", "k != 0"),
        ("k - 3", "k - 3 != 0"),
        ("n[0]", "n != 0"),
        ("n[0] * k", "k, n != 0"),
        ("2", ""),
    ],
)
@pytest.mark.parametrize("sign", ["/", "%"])
def test_an_integer_divisor_is_not_zero(
    tmp_path: Path, divisor: str, asked: str, sign: str
) -> None:
    text = f"entry f(a: i32, k: i32, n: Tensor[2; i32]) -> i32 {{ return a {sign} ({divisor}) }}"
    found = entry_requirements(tmp_path, text)
    assert [each for each in shown(found) if "!=" in each] == [asked] * bool(asked)
    good = {"a": 1, "k": 7, "n": np.array([2, 0], np.int32)}
    assert violations(found, good, {}) == ()
    bad = {"a": 1, "k": 3 if "3" in divisor else 0, "n": np.array([0, 2], np.int32)}
    said = violations(found, bad, {})
    assert len(said) == bool(asked)
    assert all("0" in each and "divided" in each for each in said)


def test_divisors_inside_a_tensor_and_of_each_turn(tmp_path: Path) -> None:
    found = entry_requirements(
        tmp_path,
        """
        entry f<N: Dim>(
            a: Tensor[N; i32], b: Tensor[N; i32], x: Tensor[N; f32], k: i32, on: bool
        ) -> Tensor[N; i32] {
            let y = a / b
            let z[n] = x[n] / x[n]
            return if on { turns(y, k) } else { y }
        }
        fn turns<N: Dim>(y: Tensor[N; i32], k: i32) -> Tensor[N; i32] {
            var all = y
            for i in 0..3 { all = all + 6 / (k - cast<i32>(i)) }
            return all
        }
        """,
    )
    given = {"a": np.ones(3, np.int32), "k": 4, "on": True}
    sizes = {"N": 3}
    assert violations(found, {**given, "b": np.array([-1, 2, 5], np.int32)}, sizes) == ()
    for b in ([-1, 0, 5], [0, 1, 2]):
        (said,) = violations(found, {**given, "b": np.array(b, np.int32)}, sizes)
        assert said in (
            "`b` gives a 0 by which an integer is divided",
            "min(`b`) is 0, and an integer is divided by it",
        )
    ones = np.ones(3, np.int32)
    for k in (0, 1, 2):
        (said,) = violations(found, {**given, "b": ones, "k": k}, sizes)
        assert said.endswith("0, and an integer is divided by it")
    assert violations(found, {**given, "b": ones, "k": 1, "on": False}, sizes) == ()
    assert violations(found, {"a": ones, "k": 4, "on": True}, sizes) == ()
    none = np.zeros(0, np.int32)
    assert violations(found, {**given, "a": none, "b": none, "on": False}, {"N": 0}) == ()
