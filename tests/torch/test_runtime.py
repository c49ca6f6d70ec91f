"""The object users hold: calls, states, weights, copies."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import linnet.torch
from linnet.torch import InputError, Model, StateError

from .support import checked
from .toy import GENERICS, TOY

Load = Callable[..., Model]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    program = checked(tmp_path, TOY)

    def make(seed: int = 0, **options: Any) -> Model:
        generics = {**GENERICS, **options.pop("generics", {})}
        model = linnet.torch.load(program, generics=generics, **options)
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_()
        return model

    return make


def tokens(*shape: int) -> torch.Tensor:
    return torch.arange(int(np.prod(shape)), dtype=torch.int32).reshape(shape) % 11


def test_state_dict_keys_are_parameter_paths(load: Load) -> None:
    keys = list(load().state_dict())
    assert keys[:2] == ["embedding.weight", "layers.0.norm.weight"]
    assert "layers.2.linear.weight" in keys
    assert not [key for key in keys if "cache" in key or "gain" in key or "bias" in key]


def test_optional_parameters_are_there_when_asked_for(load: Load) -> None:
    model = load(present=["layers.1.gain"])
    assert "layers.1.gain" in model.state_dict()
    assert "layers.0.gain" not in model.state_dict()
    plain = load()
    plain.load_state_dict(model.state_dict(), strict=False)
    with torch.no_grad():
        model.get_parameter("layers.1.gain").fill_(1.0)
    assert torch.allclose(model(tokens(1, 3)), plain(tokens(1, 3)), atol=1e-5)


def test_one_source_serves_every_length(load: Load) -> None:
    model = load()
    before = model.generated_source("forward")
    whole = model(tokens(1, 9))
    for length in (1, 2, 5, 9):
        assert torch.allclose(model(tokens(1, 9)[:, :length]), whole[:, :length], atol=1e-5)
    assert model.generated_source("forward") == before


def test_states_are_kept_and_reset(load: Load) -> None:
    model = load()
    assert model.state_paths() == [f"layers.{k}.cache" for k in range(3)]
    first = model.run_entry("step", [tokens(2, 1), 0])
    assert model.state("layers.0.cache")[:, :, 0].abs().sum() > 0
    assert model.state("layers.0.cache")[:, :, 1:].abs().sum() == 0
    second = model.run_entry("step", {"token": tokens(2, 1), "pos": 1})
    assert not torch.equal(first, second)
    model.reset_state()
    assert torch.equal(model.run_entry("step", [tokens(2, 1), 0]), first)


def test_a_refused_call_leaves_states_as_they_were(load: Load) -> None:
    model = load()
    model.run_entry("step", [tokens(2, 1), 3])
    before = {path: model.state(path) for path in model.state_paths()}
    for bad in ([tokens(2, 1), 8], [tokens(2, 2), 1], [tokens(3, 1), 1], [tokens(2, 1) + 90, 1]):
        with pytest.raises(InputError):
            model.run_entry("step", bad)
    for path, value in before.items():
        assert torch.equal(model.state(path), value)


def test_a_call_that_fails_part_way_says_so_until_reset(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load()
    model.run_entry("step", [tokens(2, 1), 0])
    loaded = model._live.loaded[("step", ())]

    def fail(*_: Any) -> None:
        raise RuntimeError("out of memory")

    working = loaded.function
    monkeypatch.setattr(loaded, "function", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        model.run_entry("step", [tokens(2, 1), 1])
    monkeypatch.setattr(loaded, "function", working)
    with pytest.raises(StateError, match=r"`step` failed part-way.*reset_state"):
        model.run_entry("step", [tokens(2, 1), 1])
    model.reset_state()
    model.run_entry("step", [tokens(2, 1), 1])


def test_copies_share_nothing_that_changes(load: Load) -> None:
    model = load()
    model.run_entry("step", [tokens(2, 1), 0])
    twin = copy.deepcopy(model)
    assert torch.equal(twin.state("layers.0.cache"), model.state("layers.0.cache"))
    twin.reset_state()
    with torch.no_grad():
        twin.get_parameter("head.weight").zero_()
    assert model.state("layers.0.cache").abs().sum() > 0
    assert model(tokens(1, 2)).abs().sum() > 0
    assert twin(tokens(1, 2)).abs().sum() == 0


def test_load_state_dict_changes_the_next_call(load: Load) -> None:
    model, other = load(0), load(1)
    assert not torch.equal(model(tokens(1, 4)), other(tokens(1, 4)))
    model.load_state_dict(other.state_dict())
    assert torch.equal(model(tokens(1, 4)), other(tokens(1, 4)))
    assigned = load(2)
    assigned.load_state_dict(other.state_dict(), assign=True)
    assert torch.equal(assigned(tokens(1, 4)), other(tokens(1, 4)))


def test_tied_weights_are_one_tensor(load: Load) -> None:
    rng = np.random.default_rng(0)
    shapes = {key: tuple(value.shape) for key, value in load().state_dict().items()}
    arrays = {key: rng.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}
    names = {key: key for key in arrays} | {"head.weight": "embedding.weight"}
    model = load_as_is(load, weights=arrays, bindings=names)
    assert model.get_parameter("head.weight") is model.get_parameter("embedding.weight")
    assert set(model.state_dict()) == set(arrays)


def load_as_is(load: Load, **options: Any) -> Model:
    program = load().binding.program
    return linnet.torch.load(program, generics=GENERICS, **options)


def test_other_dtypes_are_refused_and_devices_are_not(load: Load) -> None:
    model = load()
    with pytest.raises(TypeError, match="load it with another dtype"):
        model.half()
    want = model(tokens(1, 3))
    assert torch.equal(model.to("cpu")(tokens(1, 3)), want)


def test_results_never_share_memory_with_states(tmp_path: Path) -> None:
    text = """
module m
pub block B {
    state s: Tensor[3; f32]
    pub entry put(x: Tensor[3; f32]) -> Tensor[3; f32] { s = x return s }
    pub entry get() -> Tensor[3; f32] { return s }
    pub entry swap() -> (Tensor[3; f32], Tensor[3; f32]) {
        let before = s
        s = before[0:3] + 1.0
        return (before, s)
    }
    pub entry turn() -> Tensor[3; f32] {
        let flipped[i] = s[2 - iota<i64>(3)[i]]
        s = flipped
        return flipped
    }
}
"""
    model = linnet.torch.load(checked(tmp_path, text))
    given = torch.tensor([1.0, 2.0, 3.0])
    out = model.run_entry("put", [given])
    given.zero_()
    out.zero_()
    assert model.run_entry("get").tolist() == [1.0, 2.0, 3.0]
    model.run_entry("get").zero_()
    before, after = model.run_entry("swap")
    assert (before.tolist(), after.tolist()) == ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert model.run_entry("turn").tolist() == [4.0, 3.0, 2.0]
    assert model.run_entry("get").tolist() == [4.0, 3.0, 2.0]


def test_loops_run_on_the_host(load: Load) -> None:
    model = load()
    left, turns = model.run_entry("count_down", [5, 3], generics={"N": 2})
    assert left.tolist() == [2, 2] and left.dtype == torch.int32
    assert int(turns) == 3 and turns.dtype == torch.int32


def test_a_second_thread_waits(load: Load) -> None:
    model = load()
    want = model(tokens(1, 5))
    results: list[torch.Tensor] = []

    def call() -> None:
        results.extend(model(tokens(1, 5)) for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 15 and all(torch.equal(r, want) for r in results)


def test_unknown_options_name_the_known_ones(load: Load) -> None:
    with pytest.raises(ValueError, match="exact, equivalent, fast"):
        load(numerics="quick")
    with pytest.raises(ValueError, match="'inductor'"):
        load(compile="gcc")
    with pytest.raises(ValueError, match=r"there is no entry `run`.*forward"):
        load(entry="run", root="Model")
