"""A call that does not fit says so in the entry's words and changes nothing, to the bit."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from linnet.backends.errors import InputError, StateError

from ..matrix.backends import to_numpy
from .programs import Runner, floats

CACHE = """
use std.nn.cache::{page_slots, write_at, write_rows, write_slots, write_span, write_tokens}
pub block Main<Rows: Dim = 3, S: Dim = 8, D: Dim = 2, V: Dim = 5, Size: Dim = 4>
where Size > 0, Rows > 0, S > 0 {
    param table: Tensor[V, D; f32]
    state cache: Tensor[Rows, 1, S, D; f32]
    state calls: i32
    pub entry one(ids: Tensor[Rows; i32], pos: i32) -> Tensor[Rows, D; f32] {
        calls = calls + 1
        let x[r, d] = table[ids[r], d]
        cache = write_at(cache, reshape(x, [Rows, 1, 1, D]), pos)
        return cache[:, 0, 0, :]
    }
    pub entry span<N: Dim>(x: Tensor[Rows, N, D; f32], pos: i32) -> i32 {
        calls = calls + 1
        cache = write_span(cache, reshape(x, [Rows, 1, N, D]), pos)
        return calls
    }
    pub entry rows(x: Tensor[Rows, D; f32], at: Tensor[Rows; i32]) -> i32 {
        calls = calls + 1
        cache = write_rows(cache, reshape(x, [Rows, 1, 1, D]), at)
        return calls
    }
    pub entry slots<M: Dim, N: Dim>(x: Tensor[M, 1, N, D; f32], slots: Tensor[M; i32], pos: i32)
        -> i32 {
        calls = calls + 1
        cache = write_slots(cache, x, slots, pos)
        return calls
    }
    pub entry tokens<P: Dim>(x: Tensor[1, 1, P, D; f32], rows: Tensor[P; i32], at: Tensor[P; i32])
        -> i32 {
        calls = calls + 1
        cache = write_tokens(cache, x, rows, at)
        return calls
    }
    pub entry pages<Pages: Dim>(
        x: Tensor[1, 1, Rows, D; f32], table_: Tensor[Rows, Pages; i32], at: Tensor[Rows; i32]
    )
        -> i32 {
        calls = calls + 1
        let places = page_slots<Rows, Pages, Size>(table_, at)
        cache = write_tokens(cache, x, fill<i32>([Rows], 0), places)
        return calls
    }
    pub entry needs<K: Dim>(x: Tensor[D; f32]) -> Tensor[K; f32]
    where K > 1 {
        calls = calls + 1
        return fill<f32>([K], 1.0)
    }
}
"""


def ints(*items: Any) -> Any:
    return np.array(items, np.int32)


@pytest.fixture
def model(run: Runner) -> Any:
    made = run.load(CACHE, weights={"table": floats(5, 2)})
    made.run_entry("one", [ints(0, 1, 4), 7])
    made.run_entry("span", [floats(3, 4, 2), 2])
    return made


def bits(model: Any) -> list[bytes]:
    return [to_numpy(model.state(path)).tobytes() for path in model.state_paths()]


X = np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    ("entry", "inputs", "generics", "message"),
    [
        ("two", [], None, "no entry `two`"),
        ("one", [ints(0, 0, 0)], None, "takes 2 inputs, not 1"),
        ("one", [ints(0, 0), 0], None, "is 2, but has to be 3"),
        ("one", [ints([0, 0, 0]), 0], None, "of rank 1"),
        ("one", [ints(0, 0, 0).astype(np.int64), 0], None, r"int32|i32"),
        ("one", [ints(0, 5, 0), 0], None, "is 5, past the last position of axis V"),
        ("one", [ints(0, -1, 0), 0], None, "is -1"),
        ("one", [ints(0, 0, 0), 8], None, "`pos` is 8, past the last position of axis S"),
        ("one", [ints(0, 0, 0), -1], None, "`pos` is -1"),
        ("one", [[0, 0, 9], 0], None, "is 9, past"),
        ("one", [np.array([0, 0, 9], np.int32), 0], None, "is 9, past"),
        ("span", [floats(3, 9, 2), 0], None, "S"),
        ("span", [floats(3, 4, 2), 5], None, "S"),
        ("span", [floats(3, 4, 2), -1], None, "-1"),
        ("span", [floats(3, 4, 2).astype(np.float64), 0], None, "float32"),
        ("span", [floats(3, 4, 3), 0], None, "is 3, but has to be 2"),
        ("rows", [X, ints(0, 8, 0)], None, "is 8"),
        ("rows", [X, ints(0, 0, -2)], None, "is -2"),
        ("slots", [floats(2, 1, 2, 2), ints(0, 3), 0], None, "is 3"),
        ("slots", [floats(2, 1, 2, 2), ints(0, 1), 7], None, "S"),
        ("tokens", [floats(1, 1, 2, 2), ints(0, 3), ints(0, 0)], None, "is 3"),
        ("tokens", [floats(1, 1, 2, 2), ints(0, 2), ints(0, 8)], None, "is 8"),
        ("pages", [floats(1, 1, 3, 2), ints([0], [1], [1]), ints(0, 0, 4)], None, "past .* Pages"),
        ("pages", [floats(1, 1, 3, 2), ints([0], [1], [2]), ints(0, 0, 3)], None, "S|8|11"),
        ("needs", [floats(2)], None, "needs the generic `K`"),
        ("needs", [floats(2)], {"K": 1}, "`K > 1` does not hold"),
        ("needs", [floats(2)], {"K": "f32"}, "`K` is an integer"),
        ("needs", [floats(2)], {"K": 2, "V": 3}, "no generic `V`"),
        ("needs", {"y": floats(2)}, {"K": 2}, "no input `y`"),
    ],
)  # fmt: skip
def test_refused_and_unchanged(
    model: Any, entry: str, inputs: Any, generics: Any, message: str
) -> None:
    before = bits(model)
    with pytest.raises(InputError, match=message) as caught:
        model.run_entry(entry, inputs, generics=generics)
    assert entry in str(caught.value) and "\n" not in str(caught.value)
    assert bits(model) == before
    model.run_entry("one", [ints(0, 0, 0), 0])  # and the next call runs


def test_too_many_inputs_beside_named_ones(run: Runner) -> None:
    model = run.load(CACHE, weights={"table": floats(5, 2)}, entry="one")
    for more in ((0,), (0, 1)):
        with pytest.raises(InputError, match=r"takes 2 inputs|given twice"):
            model(ints(0, 0, 0), *more, pos=3)
    model(ints(0, 0, 0), pos=3)


def test_a_call_that_fails_part_way(run_torch: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is then nobody's: every call says so until it is reset."""
    model = run_torch.load(CACHE, weights={"table": floats(5, 2)})

    def failing(*_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(type(model), "_outside", failing)
    with pytest.raises(RuntimeError, match="out of memory"):
        model.run_entry("one", [ints(0, 0, 0), 0])
    monkeypatch.undo()
    for entry, inputs in (("one", [ints(0, 0, 0), 0]), ("span", [floats(3, 1, 2), 0])):
        with pytest.raises(StateError, match="reset_state"):
            model.run_entry(entry, inputs)
    model.reset_state()
    model.run_entry("one", [ints(0, 0, 0), 0])


def test_threads_take_turns(run: Runner) -> None:
    model = run.load(CACHE, weights={"table": floats(5, 2)})
    calls = [
        threading.Thread(target=model.run_entry, args=("span", [floats(3, 1, 2), n % 8]))
        for n in range(16)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert model.state("calls") == 16
