"""A call that begins inside another of the same thread is refused, and changes nothing."""

from __future__ import annotations

import copy
import importlib
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

import linnet
from linnet.backends.checks import Bounds
from linnet.backends.errors import StateError

SOURCE = """
module m
pub block Sums<N: Dim> {
    state first: Tensor[N; f32]
    state second: Tensor[N; f32]
    pub entry add(x: Tensor[N; f32]) -> Tensor[N; f32] {
        let y[n] = first[n] + x[n]
        second = second + x
        first = y
        return x + 1.0
    }
}
"""
LOADERS = {
    "torch": ("linnet.torch", "load"),
    "jax_model": ("linnet.jax", "load_model"),
    "jax_source": ("linnet.jax", "load_source_model"),
    "onnx_model": ("linnet.onnx", "load_model"),
}


@pytest.fixture(params=list(LOADERS))
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    path = tmp_path / "m.linnet"
    path.write_text(SOURCE, encoding="utf-8")
    module, name = LOADERS[request.param]
    pytest.importorskip(request.param.partition("_")[0].replace("onnx", "onnxruntime"))
    load = getattr(importlib.import_module(module), name)
    return load(linnet.load_program(path), root="Sums", generics={"N": 3}, weights={})


def ones() -> Any:
    return np.ones(3, np.float32)


INSIDE = {
    "a call of `add`": lambda model: model.run_entry("add", {"x": ones()}),
    "`reset_state`": lambda model: model.reset_state(),
    "`state`": lambda model: model.state("first"),
}


OF_ONE = {
    "`deepcopy`": ("torch", copy.deepcopy),
    "`to`": ("torch", lambda model: model.to("cpu")),
    "an assignment to `parameters`": (
        "jax_model", lambda model: setattr(model, "parameters", {}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(INSIDE))
def test_a_call_inside_another(model: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused_inside(model, what, INSIDE[what], monkeypatch)


@pytest.mark.parametrize(
    ("model", "what"), [(backend, what) for what, (backend, _) in OF_ONE.items()],
    indirect=["model"],
)  # fmt: skip
def test_a_change_inside_a_call(model: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused_inside(model, what, OF_ONE[what][1], monkeypatch)


def refused_inside(
    model: Any, what: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a call, which goes on as if it had not been asked for."""
    model.run_entry("add", {"x": ones()})
    check = Bounds.check
    refused: list[str] = []

    def interrupted(*args: Any) -> None:
        """As a signal's handler would come in."""
        with pytest.raises(StateError, match="began inside a call of the same thread") as error:
            change(model)
        refused.append(str(error.value))
        check(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Bounds, "check", interrupted)
        assert np.asarray(model.run_entry("add", {"x": ones()})).tolist() == [2, 2, 2]
    assert len(refused) == 1 and refused[0].startswith(what)
    assert np.asarray(model.run_entry("add", {"x": ones()})).tolist() == [2, 2, 2]
    for path in ("first", "second"):
        assert np.asarray(model.state(path)).tolist() == [3, 3, 3]
    model.reset_state()
    assert np.asarray(model.state("first")).tolist() == [0, 0, 0]


def test_a_state_is_read_between_two_calls(model: Any) -> None:
    """By another thread, whose reads wait for their turn."""
    model.run_entry("add", {"x": ones()})
    seen: list[Any] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def read() -> None:
        try:
            while not over.is_set():
                seen.append(np.asarray(model.state("first")))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(100):
        model.run_entry("add", {"x": ones()})
    over.set()
    thread.join()
    assert not failed and seen
    assert all(value.min() == value.max() and 1 <= value.min() <= 101 for value in seen)


CHILD = """
import importlib, os, sys, threading
import numpy as np
from linnet.backends.checks import Bounds
from linnet.backends.errors import StateError

module, name, path = sys.argv[1:]
load = getattr(importlib.import_module(module), name)
model = load(path, root="Sums", generics={"N": 3}, weights={})
ones = np.ones(3, np.float32)
model.run_entry("add", {"x": ones})
held, done = threading.Event(), threading.Event()
check = Bounds.check

def wait(*args):
    held.set()
    done.wait()
    check(*args)

Bounds.check = wait
other = threading.Thread(target=lambda: model.run_entry("add", {"x": ones}))
other.start()
held.wait()
Bounds.check = check
child = os.fork()
if child == 0:
    code = 1
    try:
        try:
            model.run_entry("add", {"x": ones})
        except StateError as error:
            assert "forked while another thread used the model" in str(error)
            model.reset_state()
            model.run_entry("add", {"x": ones})
            code = 0 if np.asarray(model.state("first")).tolist() == [1, 1, 1] else 2
    finally:
        os._exit(code)
done.set()
other.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert np.asarray(model.state("first")).tolist() == [2, 2, 2]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("backend", ["torch", "onnx_model"])  # JAX's own threads allow no fork
def test_a_child_of_a_busy_process(backend: str, tmp_path: Path) -> None:
    """The lock that another thread holds is not held in a child, where that thread is not."""
    pytest.importorskip({"torch": "torch", "onnx_model": "onnxruntime"}[backend])
    path = tmp_path / "m.linnet"
    path.write_text(SOURCE, encoding="utf-8")
    command = [sys.executable, "-c", CHILD, *LOADERS[backend], str(path)]
    assert subprocess.run(command, timeout=120).returncode == 0


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_has_states_of_its_own_or_is_refused(model: Any, how: Any) -> None:
    model.run_entry("add", {"x": ones()})
    is_torch = "torch" in type(model).__module__
    if is_torch and how is not pickle.dumps:
        twin = how(model)
        twin.run_entry("add", {"x": ones()})
        shared = how is copy.copy  # as every PyTorch module's copy shares what it holds
        assert np.asarray(model.state("first")).tolist() == [2 if shared else 1] * 3
        return
    with pytest.raises(TypeError, match=r"cannot be (copied or )?pickled: .*load the model again"):
        how(model)
    model.run_entry("add", {"x": ones()})
    assert np.asarray(model.state("first")).tolist() == [2, 2, 2]


@pytest.mark.parametrize("model", ["jax_model", "jax_source", "onnx_model"], indirect=True)
def test_a_copy_of_a_class_of_the_callers(model: Any) -> None:
    model.__class__ = type("Own", (type(model),), {"__module__": "__main__"})
    with pytest.raises(TypeError, match=r"a Model of the (JAX|ONNX Runtime) backend"):
        copy.deepcopy(model)


@pytest.mark.parametrize("model", ["torch"], indirect=True)
def test_a_copy_of_a_broken_model_is_broken(model: Any) -> None:
    model._live.turns.failed("add")
    twin = copy.deepcopy(model)
    with pytest.raises(StateError, match="`add` failed part-way"):
        twin.run_entry("add", {"x": ones()})
    twin.reset_state()
    twin.run_entry("add", {"x": ones()})


def test_an_interrupt_leaves_no_turn_taken(model: Any) -> None:
    """Wherever it comes, while the exception, and so every frame of the call, is still there."""
    model.run_entry("add", {"x": ones()})
    files = {"turns.py", "contextlib.py", "model.py", "module.py"}
    for stop in range(1, 40):
        seen = 0

        def interrupt(frame: Any, event: str, _: Any, stop: int = stop) -> None:
            nonlocal seen
            if Path(frame.f_code.co_filename).name in files and event in ("call", "return"):
                seen += 1
                if seen == stop:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        try:
            sys.setprofile(interrupt)
            model.run_entry("add", {"x": ones()})
        except KeyboardInterrupt:
            sys.setprofile(None)
            model.reset_state()
            assert np.asarray(model.run_entry("add", {"x": ones()})).tolist() == [2, 2, 2]
        finally:
            sys.setprofile(None)
