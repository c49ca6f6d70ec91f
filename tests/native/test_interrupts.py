"""Calls that begin inside another call, in other threads, or in a child process."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.backends.errors import InputError, StateError
from linnet.native import Model, load
from linnet.native.runtime.code import Entry
from linnet.native.runtime.library import Library
from linnet.native.runtime.packing import Weights

from .support import checked

LINEAR = """
module m
use std.nn.linear::{Linear}
pub block Counted<N: Dim, K: Dim, T: Float> where N > 0, K > 0 {
    sub lin: Linear<K, N, T>
    state count: Tensor[1; f32]
    pub entry step<B: Dim>(x: Tensor[B, K; T]) -> Tensor[B, N; T] {
        count = count + 1.0
        return lin.forward(x)
    }
    pub entry counted() -> Tensor[1; f32] {
        count = count + 1.0
        return count
    }
    pub entry picked<B: Dim>(x: Tensor[B; f32], at: Tensor[B; i32]) -> Tensor[B; f32] {
        let y[i] = x[cast<i64>(at[i])]
        return y
    }
}
"""
N, K = 48, 64


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return checked(tmp_path_factory.mktemp("linear"), LINEAR)


def model_of(program: Any, seed: int = 0, dtype: str = "f32", **more: Any) -> Model:
    weight = np.random.default_rng(seed).standard_normal((N, K)).astype(np.float32)
    if dtype == "bf16":
        import ml_dtypes

        weight = weight.astype(ml_dtypes.bfloat16)
    return load(
        program, generics={"N": N, "K": K, "T": dtype}, weights={"lin.weight": weight}, **more
    )


def inside(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, call: Callable[[], None]
) -> None:
    """Has `call` run once, at the beginning of a method, as a signal's handler might be."""
    method, left = getattr(owner, name), [call]

    def interrupted(*args: Any, **named: Any) -> Any:
        if left:
            left.pop()()
        return method(*args, **named)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("place", [(Entry, "bind"), (Weights, "packed"), (Weights, "release")])
@pytest.mark.parametrize("change", ["reset_state", "parameters", "first call", "prepare"])
def test_no_change_inside_a_change(
    program: Any, monkeypatch: pytest.MonkeyPatch, place: tuple[type, str], change: str
) -> None:
    model = model_of(program, weights_format="int8")
    model.run_entry("counted")
    refused: list[StateError] = []

    def begun() -> None:
        with pytest.raises(StateError, match="is being prepared or reset") as error:
            if change == "reset_state":
                model.reset_state()
            elif change == "parameters":
                dict(model.parameters)
            elif change == "prepare":
                model.prepare("picked")
            else:
                model.run_entry("picked", [np.ones(1, np.float32), np.zeros(1, np.int32)])
        refused.append(error.value)
        assert model.run_entry("counted").tolist() == [2]  # what is ready runs

    inside(monkeypatch, *place, begun)
    x = np.ones((2, K), np.float32)
    first = model.run_entry("step", [x])
    assert len(refused) == 1 and model.run_entry("counted").tolist() == [4]
    model.reset_state()
    assert model.run_entry("counted").tolist() == [1]
    np.testing.assert_array_equal(model.run_entry("step", [x]), first)
    assert model.state("count").tolist() == [2]


def test_the_same_first_call_just_before_a_change(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one compiled entry, which later resets reach."""
    model = model_of(program)
    model._find("counted", {})
    inside(monkeypatch, Model, "_alone", lambda: model.run_entry("counted"))
    assert model.run_entry("counted").tolist() == [2]
    for _ in range(2):
        model.reset_state()
        assert model.run_entry("counted").tolist() == [1]
        assert model.state("count").tolist() == [1]


def test_no_reset_inside_a_reset(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(program)
    for _ in range(2):
        model.run_entry("counted")
    tried: list[int] = []

    def begun() -> None:
        with pytest.raises(StateError, match="is being prepared or reset"):
            model.reset_state()
        with pytest.raises(StateError, match="`reset_state` failed part-way"):
            model.run_entry("counted")
        tried.append(1)

    inside(monkeypatch, Entry, "bind", begun)
    model.reset_state()
    assert tried and model.run_entry("counted").tolist() == [1]


def test_a_reset_between_two_steps_of_a_call(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is half done it is as if it had come before the call."""
    model = model_of(program)
    model.run_entry("counted")
    inside(monkeypatch, Entry, "run", model.reset_state)
    monkeypatch.setattr("linnet.native.runtime.model.Repeat.of", lambda *_: None)
    model._repeats.clear()
    assert model.run_entry("counted").tolist() == [1]
    assert model.state("count").tolist() == [1]


@pytest.mark.parametrize("short", [True, False])
def test_a_call_on_what_a_failed_one_left(
    program: Any, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler's call fails between the checks of the call it interrupts and its work."""
    model = model_of(program)
    for _ in range(2):
        model.run_entry("counted")
    if not short:
        model._repeats.clear()
    run = Entry.call

    def interrupted(self: Entry, *given: Any) -> None:
        monkeypatch.setattr(Entry, "call", fails)
        with pytest.raises(MemoryError):
            model.run_entry("counted")
        monkeypatch.setattr(Entry, "call", run)
        run(self, *given)

    def fails(self: Entry, *given: Any) -> None:
        run(self, *given)
        raise MemoryError

    monkeypatch.setattr(Entry, "call", interrupted)
    with pytest.raises(StateError, match=r"`counted` failed part-way.*reset_state\(\)"):
        model.run_entry("counted")
    model.reset_state()
    assert model.run_entry("counted").tolist() == [1]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("called", [False, True])
def test_models_are_not_copied(program: Any, how: Callable[[Any], Any], called: bool) -> None:
    model = model_of(program, weights_format="int8")
    x = np.ones((2, K), np.float32)
    found = model.run_entry("step", [x]) if called else None
    for owner in (model, model._weights, *model._loaded.values(), [model]):
        if owner == [model] and how is copy.copy:
            continue
        with pytest.raises(TypeError, match="cannot be copied or pickled: load the model again"):
            how(owner)
    gc.collect()
    again = model.run_entry("step", [x])
    assert found is None or again.tolist() == found.tolist()


@pytest.mark.parametrize("kind", [None, "int8", "int4"])
def test_models_unpack_side_by_side(program: Any, kind: str | None) -> None:
    """bf16 is unpacked through f32 that the models share."""
    models = [model_of(program, seed, "bf16", weights_format=kind) for seed in range(2)]
    rights = []
    for model in models:
        import ml_dtypes

        model.run_entry("step", [np.ones((1, K), ml_dtypes.bfloat16)])
        rights.append(model.parameters["lin.weight"].astype(np.float32))
    wrong: list[int] = []

    def read(model: Model, right: Any) -> None:
        arrays = (model.parameters["lin.weight"].astype(np.float32) for _ in range(300))
        wrong.extend(int((array != right).sum()) for array in arrays)

    run_together([lambda k=k: read(models[k], rights[k]) for k in range(2)])
    assert not any(wrong)


def test_scratch_memory_is_one_users(program: Any) -> None:
    library = Library.get()
    library.forget()
    mine, other = library._scratch(10), library._scratch(10)
    assert not np.shares_memory(mine, other)
    library._spare[:] = [mine]
    assert library._scratch(8) is mine and library._scratch(8) is not mine


def test_parameters_while_the_first_call_packs(program: Any) -> None:
    x = np.ones((2, K), np.float32)
    for seed in range(8):
        model = model_of(program, seed, weights_format="int8")
        alone = model_of(program, seed, weights_format="int8")
        right = dict(alone.parameters)["lin.weight"]
        found: list[Any] = []
        run_together([
            lambda m=model, f=found: f.append(m.run_entry("step", [x])),
            lambda m=model, f=found: f.extend(m.parameters["lin.weight"] for _ in range(20)),
        ])  # fmt: skip
        arrays = [each for each in found if each.shape == (N, K)]
        assert len(arrays) == 20 and all((each == right).all() for each in arrays)
        result = next(each for each in found if each.shape != (N, K))
        np.testing.assert_allclose(result, alone.run_entry("step", [x]), rtol=1e-5)


def run_together(calls: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed, failed


def test_indices_are_the_calls_own(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a caller's other thread writes to an index array after the checks changes nothing."""
    model = model_of(program)
    x, at = np.array([1, 2, 3, 4], np.float32), np.array([3, 2, 1, 0], np.int32)
    far = np.int32(-(1 << 30))
    call = Entry.call

    def changed(self: Entry, *args: Any) -> None:
        at[:] = far
        call(self, *args)

    monkeypatch.setattr(Entry, "call", changed)
    for _ in range(3):  # the full way, and the short one
        at[:] = [3, 2, 1, 0]
        assert model.run_entry("picked", [x, at]).tolist() == [4, 3, 2, 1]
        assert (at == far).all()
        with pytest.raises(InputError, match="before the first position"):
            model.run_entry("picked", [x, at])


CHILD = """
import os, sys, threading
from linnet.backends.errors import StateError
from linnet.native import load

model = load(sys.argv[1], root="Counted", generics={"N": 4, "K": 4, "T": "f32"})
model.run_entry("counted")
held, done = threading.Event(), threading.Event()

def hold():
    def wait():
        held.set()
        done.wait()

    with model._turns.lock:
        model._alone(wait) if sys.argv[2] == "changing" else wait()

other = threading.Thread(target=hold)
other.start()
held.wait()
child = os.fork()
if child == 0:
    code = 1
    try:
        try:
            model.run_entry("counted")
        except StateError as error:
            assert "forked while another thread used the model" in str(error)
            model.reset_state()
            code = 0 if model.run_entry("counted").tolist() == [1] else 2
    finally:
        os._exit(code)
done.set()
other.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert model.run_entry("counted").tolist() == [2]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("how", ["running", "changing"])
def test_a_child_of_a_busy_process(tmp_path: Path, how: str) -> None:
    """The lock that another thread holds is not held in a child, where that thread is not."""
    checked(tmp_path, LINEAR)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "program.linnet"), how]
    assert subprocess.run(command, timeout=120).returncode == 0
