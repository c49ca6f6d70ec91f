"""Calls on ONNX Runtime: the short way in with several results, and calls that do not end well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linnet.onnx
from linnet.onnx import RunError, StateError
from linnet.onnx.runtime import session as sessions
from linnet.onnx.runtime.model import Model
from linnet.onnx.runtime.repeat import Repeat
from linnet.onnx.runtime.states import States

from .support import checked

SOURCE = """
module m
pub block Cached<V: Dim, N: Dim> where V > 0, N > 0 {
    param table: Tensor[V; f32]
    state cache: Tensor[N; f32]
    state other: Tensor[N; f32]
    pub entry step<S: Dim>(ids: Tensor[S; i32], pos: i32) -> Tensor[S; f32] {
        let found[i] = table[cast<i64>(ids[i])]
        let moved[n] = cast<i64>(pos) + iota<i64>(S)[n]
        let kept[n] = cache[moved[n]]
        cache = cache + 1.0
        let y[i] = found[i] + kept[i]
        return y
    }
    pub entry one(id: Tensor[1; i32]) -> (Tensor[1; f32], Tensor[1; i32]) {
        let found[i] = table[cast<i64>(id[i])]
        return (found, id + id)
    }
    pub entry pair(x: f32) {
        let y[n] = cache[n] + (sum[k] other[k] * 0.0) + x
        other = cache + x
        cache = y
    }
}
"""


def ids(*values: int, dtype: Any = np.int32) -> Any:
    return np.array(values, dtype)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return checked(tmp_path_factory.mktemp("cached"), SOURCE)


@pytest.fixture(params=["exact", "fast"])
def model(program: Any, request: pytest.FixtureRequest) -> Model:
    table = np.arange(5, dtype=np.float32)
    return linnet.onnx.load_model(
        program, root="Cached", generics={"V": 5, "N": 4}, weights={"table": table}, threads=1,
        numerics=request.param,
    )  # fmt: skip


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each call that took the short way."""
    taken: list[int] = []
    take: Callable[..., Any] = Repeat.take

    def noted(self: Repeat, inputs: tuple[Any, ...]) -> Any:
        held = take(self, inputs)
        taken.extend([1] * (held is not None))
        return held

    monkeypatch.setattr(Repeat, "take", noted)
    return taken


def test_several_results(model: Model, short: list[int]) -> None:
    for k in range(3):
        found, doubled = model.run_entry("one", [ids(k)])
        assert (found.tolist(), doubled.tolist()) == ([k], [2 * k])
    assert len(short) == 2


def test_no_call_is_short_while_the_state_is_broken(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        model.run_entry("step", [ids(3), 0])
    with monkeypatch.context() as patch:
        patch.setattr(sessions.EntrySession, "writes_in_place", lambda _: True)
        patch.setattr(sessions.EntrySession, "_bind_states", _fails)
        with pytest.raises(RunError, match="stopped"):
            model.run_entry("step", [ids(3), 0])
    for _ in range(2):
        with pytest.raises(StateError, match="an earlier call of `step` failed part-way"):
            model.run_entry("step", [ids(3), 0])
    model.reset_state()
    assert model.run_entry("step", [ids(3), 0]).tolist() == [3]


def _fails(*_: Any) -> Any:
    raise RunError("stopped")


def test_states_that_are_half_swapped_have_to_be_reset(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions.EntrySession, "writes_in_place", lambda _: False)
    model.run_entry("step", [ids(3), 0])

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(States, "swap", stopped)
        with pytest.raises(KeyboardInterrupt):
            model.run_entry("pair", [np.float32(1)])
    with pytest.raises(StateError, match="an earlier call of `pair` failed part-way"):
        model.run_entry("step", [ids(3), 0])
    model.reset_state()
    assert model.run_entry("step", [ids(3), 0]).tolist() == [3]


@pytest.mark.parametrize("base", [Exception, RuntimeError])
def test_what_a_handler_raises_stays_what_it_is(
    model: Model, monkeypatch: pytest.MonkeyPatch, base: type[Exception]
) -> None:
    class Stopped(base):  # type: ignore[misc, valid-type]
        pass

    class Session:
        def run_with_iobinding(self, *_: Any) -> None:
            raise Stopped

    run = sessions.EntrySession.run

    def interrupted(self: Any, *args: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(self, "session", Session())
            return run(self, *args)

    monkeypatch.setattr(sessions.EntrySession, "run", interrupted)
    with pytest.raises(Stopped):
        model.run_entry("one", [ids(1)])
