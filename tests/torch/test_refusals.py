"""What only running tells and has no meaning: refused by name, never wrapped around."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import linnet.torch
from linnet.torch import InputError, Model, RunError, StateError

from .support import checked

PROGRAM = """
module m
pub block M {
    state at: Tensor[1; i32]
    pub entry move(to: i32) -> i32 {
        at = iota<i32>(1) + to
        return to
    }
    pub entry one(x: Tensor[3, 2; f32]) -> Tensor[2; f32] { return x[at[0], :] }
    pub entry grid(x: Tensor[3, 2; f32]) -> Tensor[2, 2, 2; f32] {
        let i[a, b] = iota<i32>(2)[a] + iota<i32>(2)[b] + at[0]
        let r[a, b, k] = x[i[a, b], k]
        return r
    }
    pub entry middle(x: Tensor[3, 2; f32]) -> Tensor[2, 2, 3; f32] {
        let y[a, c, b] = x[a, b] + cast<f32>(iota<i32>(4)[c])
        let i[a, b] = iota<i32>(2)[a] + iota<i32>(2)[b] + at[0]
        let r[a, b, n] = y[n, i[a, b], 0]
        return r
    }
    pub entry both(x: Tensor[3, 2; f32]) -> Tensor[3; f32] {
        let i = iota<i32>(3) + at[0]
        let r[a] = x[i[a], at[0]]
        return r
    }
    pub entry turns(x: Tensor[3, 2; f32]) -> f32 {
        var k = cast<i64>(at[0])
        var r: f32 = 0.0
        while k > -3 {
            r = r + x[k, 0]
            k = k - 1
        }
        return r
    }
    pub entry part(x: Tensor[3, 2; f32]) -> i32 {
        at = at + 1
        return 1 / (at[0] - 1)
    }
    pub entry most<N: Dim, K: Dim>(x: Tensor[N, K; f32]) -> Tensor[N; f32] {
        let r[n] = max[k] x[n, k]
        return r
    }
    pub entry least<N: Dim, K: Dim>(x: Tensor[N, K; u64]) -> Tensor[N; u64] {
        let r[n] = min[k] x[n, k]
        return r
    }
}
"""
X = torch.arange(6.0).reshape(3, 2)


@pytest.fixture(scope="module", params=["exact", "fast"])
def model(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Model:
    program = checked(tmp_path_factory.mktemp("refusals"), PROGRAM)
    return linnet.torch.load(program, numerics=request.param, compile=False)


@pytest.mark.parametrize("entry", ["one", "grid", "middle", "both", "turns"])
@pytest.mark.parametrize("at", [-1, -2, 4])
def test_an_index_outside_is_refused(model: Model, entry: str, at: int) -> None:
    model.run_entry("move", [at])
    said = rf"^`{entry}`: .* in `program::M.{entry}` \(.*program.linnet:\d+\)$"
    with pytest.raises(RunError, match=said) as caught:
        model.run_entry(entry, [X])
    assert isinstance(caught.value.__cause__, IndexError)


def test_an_index_inside_is_not(model: Model) -> None:
    model.run_entry("move", [0])
    assert model.run_entry("both", [X]).tolist() == [0, 2, 4]
    assert torch.equal(model.run_entry("grid", [X])[1], X[1:3])
    assert torch.equal(model.run_entry("middle", [X])[0, 1], X[:, 0] + 1)


def test_a_division_by_zero_names_its_place(model: Model) -> None:
    model.reset_state()
    with pytest.raises(RunError, match=r"`part`: integer division by zero in .*linnet:\d+"):
        model.run_entry("part", [X])
    with pytest.raises(StateError, match="`part` failed part-way"):
        model.run_entry("move", [0])
    model.reset_state()


@pytest.mark.parametrize("entry", ["most", "least"])
def test_no_elements_have_an_extreme_where_nobody_asks(model: Model, entry: str) -> None:
    dtype = torch.float32 if entry == "most" else torch.uint64
    for shape in ((0, 0), (0, 2)):
        made = model.run_entry(entry, [torch.zeros(shape, dtype=dtype)])
        assert (made.dtype, tuple(made.shape)) == (dtype, (0,))
    assert model.run_entry(entry, [torch.ones((2, 3), dtype=dtype)]).tolist() == [1, 1]
    with pytest.raises(RunError, match=rf"`{entry}`: the minimum or maximum of no elements"):
        model.run_entry(entry, [torch.zeros((2, 0), dtype=dtype)])


def test_memory_and_interrupts_are_not_ours(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model.run_entry("move", [0])
    model.run_entry("both", [X])
    loaded = model._live.loaded[("both", ())]
    for error in (KeyboardInterrupt(), MemoryError(), RuntimeError("can't allocate memory")):

        def fail(*_: Any, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(loaded, "function", fail)
        with pytest.raises(type(error)) as caught:
            model.run_entry("both", [X])
        assert caught.value is error


def test_tensors_without_values_are_refused(model: Model) -> None:
    with pytest.raises(InputError, match="`x` is a torch tensor on the device `meta`"):
        model.run_entry("one", [X.to("meta")])


def test_an_exact_softmax_of_no_tokens_is_empty(tmp_path: Path) -> None:
    text = """
module m
use std.nn.softmax::{softmax}
pub block M {
    pub entry mix<B: Dim, S: Dim>(x: Tensor[B, S, S; f32]) -> Tensor[B, S, S; f32] {
        return softmax(x)
    }
}
"""
    model = linnet.torch.load(checked(tmp_path, text), numerics="exact", compile=False)
    for batch in (0, 2):
        assert model.run_entry("mix", [np.zeros((batch, 0, 0), np.float32)]).shape == (batch, 0, 0)


def test_compiled_code_looks_up_as_other_code_does(tmp_path: Path) -> None:
    """Inductor's own look-ups would count negative numbers from the end."""
    text = """
module m
pub block B<N: Dim> where N > 0 {
    state at: Tensor[1; i32]
    pub entry put(v: i32) -> i32 {
        at = at * 0 + v
        return at[0]
    }
    pub entry row(x: Tensor[N, 3; f32]) -> Tensor[3; f32] {
        let y[k] = x[at[0], k]
        return y
    }
}
"""
    program = checked(tmp_path, text)
    x = torch.arange(12.0).reshape(4, 3)
    model = linnet.torch.load(program, generics={"N": 4}, compile="inductor")
    assert "picked_inside" in model.generated_source("row")
    for at in (0, 3):
        model.run_entry("put", [at])
        assert model.run_entry("row", [x]).tolist() == x[at].tolist()
    for at in (-1, 4):
        model.run_entry("put", [at])
        with pytest.raises(RunError, match=r"`row`: an index lies outside (its|an) axis"):
            model.run_entry("row", [x])
