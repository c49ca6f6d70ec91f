"""Random programs over states, views, loops and returned states: PyTorch, which writes in place,
against the NumPy oracle, which never does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.passes.test_state import BLOCKS, random_program, run, same

import linnet.torch
from linnet.backends.expr import Expr
from linnet.ir import Op, Program
from linnet.ir.evaluate import Evaluator
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.model import made, operands_of
from linnet.torch.natives.table import KERNELS

from .support import to_numpy


@pytest.fixture(autouse=True)
def _set_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs' own kernel: it writes a square's first row, in place where it may."""

    def emit(w: Writer, op: Op) -> Expr:
        square, row = operands_of(w, op)
        target = square.at(20) if op.attrs.get("in_place") else f"{square.at(20)}.clone()"
        at = "torch.zeros(1, dtype=torch.int64)"
        return made(op, f"{target}.index_copy_(0, {at}, {row.at(20)}[None].clone())", (square, row))

    monkeypatch.setitem(KERNELS, "set_row", emit)


def calls(model: linnet.torch.Model, seed: int) -> tuple[list[Any], list[Any]]:
    """What `run` of the passes' tests does, on PyTorch; and the inputs as they were and are."""
    rng = np.random.default_rng(seed)
    kept: list[Any] = []
    inputs = []
    for k in (0, 1, 0, 1, 1):
        arrays = [rng.normal(size=(2, 2)).round(1) for _ in range(2)]
        given = [torch.from_numpy(array.copy()) for array in arrays]
        inputs += zip(arrays, given, strict=True)
        kept.append(model.run_entry(f"e{k}", given))
    kept.append({path: model.state(path) for path in model.state_paths()})
    states = {path: to_numpy(value) for path, value in kept.pop().items()}
    return [*map(to_numpy, kept), states], inputs


def check(seed: int) -> str:
    """The generated text of both entries, once its results are found right."""
    functions = random_program(seed)
    want = run(functions, Evaluator, seed)
    model = linnet.torch.load(
        Program("m", functions, BLOCKS), root="m::Top", numerics="exact", compile=False
    )
    got, inputs = calls(model, seed)
    text = "\n".join(model.generated_source(f"e{k}") for k in range(2))
    assert same(got, want), f"random_program({seed})\n{text}"
    assert all(np.array_equal(a, b.numpy()) for a, b in inputs), f"an input changed\n{text}"
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
