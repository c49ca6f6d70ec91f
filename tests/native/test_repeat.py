"""Calls like an earlier one take a shorter way in, and are checked as the first was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from linnet.backends.errors import InputError, StateError
from linnet.native import Model, RunError, load
from linnet.native.runtime import repeat as repeats
from linnet.native.runtime.code import Entry
from linnet.native.runtime.repeat import Call, Repeat

from .support import checked

CACHED = """
module m
pub block Cached<V: Dim, N: Dim> where V > 0, N > 0 {
    param table: Tensor[V; f32]
    state cache: Tensor[N; f32]
    pub entry step<S: Dim>(ids: Tensor[S; i32], pos: i32) -> Tensor[S; f32] {
        let found[i] = table[cast<i64>(ids[i])]
        let moved[n] = cast<i64>(pos) + iota<i64>(S)[n]
        let kept[n] = cache[moved[n]]
        cache = cache + 1.0
        let y[i] = found[i] + kept[i]
        return y
    }
    pub entry divide(x: i32, by: i32) -> i32 {
        cache = cache + cache
        return x / by
    }
    pub entry scale(x: Tensor[N; f32], at: Tensor[N; i32]) -> Tensor[N; f32] {
        let y[i] = x[i] * table[cast<i64>(at[i])]
        return y
    }
}
"""


def ids(*values: int, dtype: Any = np.int32) -> Any:
    return np.array(values, dtype)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return checked(tmp_path_factory.mktemp("cached"), CACHED)


@pytest.fixture
def model(program: Any) -> Model:
    table = np.arange(5, dtype=np.float32)
    return load(program, generics={"V": 5, "N": 4}, numerics="exact", weights={"table": table})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each call that took the short way."""
    taken: list[int] = []
    run: Callable[[Call], Any] = Call.run

    def noted(self: Call) -> Any:
        taken.append(1)
        return run(self)

    monkeypatch.setattr(Call, "run", noted)
    return taken


def test_read_only_inputs(model: Model, short: list[int]) -> None:
    given = ids(1, 3)
    given.flags.writeable = False
    for turn in range(2):
        assert model.run_entry("step", [given, 0]).tolist() == [1 + turn, 3 + turn]
    assert len(short) == 1


def test_a_failure_half_way_is_remembered(model: Model, short: list[int]) -> None:
    for _ in range(2):
        assert model.run_entry("divide", [7, 2]) == 3
    with pytest.raises((InputError, RunError), match="0"):
        model.run_entry("divide", [7, 0])
    if model._turns.broken:
        with pytest.raises(StateError, match="reset_state"):
            model.run_entry("step", [ids(1), 0])


def test_floats_and_whole_arrays(model: Model, short: list[int]) -> None:
    x = np.array([1, 2, 3, 4], np.float32)
    for at in (ids(0, 1, 2, 3), ids(4, 4, 4, 4), ids(3, 0, 3, 0)):
        found = model.run_entry("scale", [x, at])
        np.testing.assert_array_equal(found, x * at)
    assert len(short) == 2
    with pytest.raises(InputError, match=r"max\(`at`\) is 5"):
        model.run_entry("scale", [x, ids(0, 5, 0, 0)])


def test_callers_at_once(model: Model) -> None:
    wrong: list[Any] = []

    def call(k: int) -> None:
        x = np.full(4, k, np.float32)
        for turn in range(200):
            at = np.full(4, turn % 5, np.int32)
            found = model.run_entry("scale", [x, at])
            if found.tolist() != [k * (turn % 5)] * 4:
                wrong.append((k, turn, found))

    callers = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert not wrong


def test_a_call_inside_a_call(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal's handler or a finaliser may begin one, once the outer one's inputs are taken."""
    inner: list[Any] = []
    run: Callable[[Call], Any] = Call.run
    x = np.arange(4, dtype=np.float32)

    def nested(self: Call) -> Any:
        if not inner:
            inner.append(None)
            inner[0] = model.run_entry("scale", [x * 10, ids(1, 1, 1, 1)])
        return run(self)

    assert model.run_entry("scale", [x, ids(2, 2, 2, 2)]).tolist() == [0, 2, 4, 6]
    monkeypatch.setattr(Call, "run", nested)
    assert model.run_entry("scale", [x, ids(3, 3, 3, 3)]).tolist() == [0, 3, 6, 9]
    assert inner[0].tolist() == [0, 10, 20, 30]


def test_inputs_that_a_caller_takes_away_meanwhile(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Callable[[Call], Any] = Call.run
    given: list[Any] = []

    def emptied(self: Call) -> Any:
        given.clear()
        return run(self)

    monkeypatch.setattr(Call, "run", emptied)
    for turn in range(3):
        given[:] = [np.full(4, 7, np.float32), ids(turn, turn, turn, turn)]
        assert model.run_entry("scale", given).tolist() == [7 * turn] * 4


def test_no_memory_for_a_result_leaves_the_state_whole(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        model.run_entry("step", [ids(1), 0])

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        def empty(self, *_: Any) -> Any:
            raise MemoryError("no memory")

    with monkeypatch.context() as without:
        without.setattr(repeats, "np", Full())
        with pytest.raises(MemoryError):
            model.run_entry("step", [ids(1), 0])
    assert model.run_entry("step", [ids(1), 0]).tolist() == [3]


@pytest.mark.parametrize("name", [["step"], {"step": 1}, {"step"}, np.array(["step"])])
def test_a_name_that_is_none(model: Model, name: Any) -> None:
    with pytest.raises(InputError, match="there is no entry"):
        model.run_entry(name, [ids(1), 0])


def test_what_is_never_short_is_tried_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    of = Repeat.of

    def noted(*args: Any) -> Any:
        tried.append(1)
        return of(*args)

    monkeypatch.setattr(Repeat, "of", staticmethod(noted))
    for _ in range(4):
        assert model.run_entry("divide", [9, 2]) == 4
    assert len(tried) == 1


def test_a_reset_that_is_interrupted(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """No code is left with states that are gone, and the model says that it has to be reset."""
    step: list[Any] = [ids(1), 0]
    for _ in range(2):
        model.run_entry("step", step)
    bind = Entry.bind

    def interrupted(*_: Any) -> None:
        with pytest.raises(StateError, match="reset_state"):  # a signal's handler
            model.run_entry("step", step)
        raise KeyboardInterrupt

    monkeypatch.setattr(Entry, "bind", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.reset_state()
    monkeypatch.setattr(Entry, "bind", bind)
    with pytest.raises(StateError, match=r"`reset_state` failed part-way.*reset_state\(\)"):
        model.run_entry("step", step)
    model.reset_state()
    assert model.run_entry("step", step).tolist() == [1]
    assert model.state("cache").tolist() == [1, 1, 1, 1]
