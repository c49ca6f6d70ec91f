"""Random programs over states, views, loops and returned states: PyTorch, which writes in place,
against the NumPy oracle, which never does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.passes.test_state import BLOCKS, random_program, same

import linnet.torch
from linnet.backends.expr import Expr
from linnet.ir import Function, Op, Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import Call
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.model import made, operands_of
from linnet.torch.natives.table import KERNELS

from .support import checked, to_numpy


@pytest.fixture(autouse=True)
def _kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs' own kernel: it writes a square's first row, in place where it may."""

    def emit(w: Writer, op: Op) -> Expr:
        square, row = operands_of(w, op)
        target = square.at(20) if op.attrs.get("in_place") else f"{square.at(20)}.clone()"
        at = "torch.zeros(1, dtype=torch.int64)"
        return made(op, f"{target}.index_copy_(0, {at}, {row.at(20)}[None].clone())", (square, row))

    monkeypatch.setitem(KERNELS, "set_row", emit)


def given(seed: int) -> list[tuple[str, list[Any]]]:
    """Calls of both entries. Whole numbers: in what order they are summed makes no difference."""
    rng = np.random.default_rng(seed)
    entries = ("e0", "e1", "e0", "e1", "e1")
    return [(entry, [rng.normal(0, 5, (2, 2)).round() for _ in range(2)]) for entry in entries]


def wanted(functions: dict[str, Function], seed: int) -> list[Any]:
    """Every result, looked at when all is over, and the states."""
    ev = Evaluator(functions, BLOCKS, root="m::Top", natives={"set_row": set_row})
    kept: list[Any] = [ev.run(f"m::Top.{entry}", inputs) for entry, inputs in given(seed)]
    return [*kept, {path: np.array(value) for path, value in ev.state.items()}]


def made_by(model: linnet.torch.Model, seed: int) -> list[Any]:
    """The same on PyTorch, whose inputs stay as they were."""
    kept: list[Any] = []
    tensors: list[Any] = []
    for entry, inputs in given(seed):
        tensors.append([torch.from_numpy(array.copy()) for array in inputs])
        kept.append(model.run_entry(entry, tensors[-1]))
    for (_, inputs), passed in zip(given(seed), tensors, strict=True):
        assert all(map(np.array_equal, inputs, passed)), "an input was written"
    states = {path: to_numpy(model.state(path)) for path in model.state_paths()}
    return [*map(to_numpy, kept), states]


def set_row(call: Call) -> Any:
    new = np.array(call.operands[0])
    new[0] = call.operands[1]
    return new


def check(seed: int) -> str:
    """The generated text of both entries, once its results are found right."""
    functions = random_program(seed)
    model = linnet.torch.load(
        Program("m", functions, BLOCKS), root="m::Top", numerics="exact", compile=False
    )
    got = made_by(model, seed)
    text = "\n".join(model.generated_source(f"e{k}") for k in range(2))
    assert same(got, wanted(functions, seed)), f"random_program({seed})\n{text}"
    return text


@pytest.mark.parametrize("block", range(2))
def test_in_place_runs_equal_the_oracle(block: int) -> None:
    texts = [check(seed) for seed in range(block * 10, block * 10 + 10)]
    assert sum(".clone()" in text for text in texts) > 3
    assert sum(".copy_(" in text for text in texts) > 3


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_in_place_runs_of_many_equal_the_oracle(block: int) -> None:
    for seed in range(100 + block * 50, 150 + block * 50):
        check(seed)


EFFECTS = """
module m

pub block Model {
    state a: Tensor[2; f32]

    fn put(x: Tensor[2; f32]) -> Tensor[2; f32] {
        a = x
        return x + 1.0
    }

    pub entry step(x: Tensor[2; f32], once: bool) -> Tensor[2; f32] {
        let unread = if once { put(x) } else { put(x * 2.0) }
        return a
    }
}
"""


@pytest.mark.parametrize("once", [True, False])
def test_a_branch_whose_result_nobody_reads_still_writes(once: bool, tmp_path: Path) -> None:
    model = linnet.torch.load(checked(tmp_path, EFFECTS), compile=False)
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(model.run_entry("step", [x, once]), x if once else x * 2)
