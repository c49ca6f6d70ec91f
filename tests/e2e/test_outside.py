"""Writes past the end of a cache: refused where a caller can be told, and where they reach the code
all the same they do what the body says, in place, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet
from linnet.ir.evaluate import Evaluator

from ..matrix.backends import to_numpy, unchecked
from .programs import Runner, floats
from .test_refusals import CACHE, ints

TABLE = floats(5, 2)
# Each with positions before the first, past the last and across both.
CALLS: list[tuple[str, list[list[Any]]]] = [
    ("one", [[ints(0, 1, 4), at] for at in (7, 8, -1, 3, 100)]),
    ("span", [[floats(3, 4, 2, seed=at + 9), at] for at in (4, 5, 7, 8, -1, -3, -4, 50)]),
    ("rows", [[floats(3, 2, seed=k), at] for k, at in
              enumerate([ints(0, 7, 8), ints(-1, 8, 3), ints(9, -5, -1)])]),
    ("slots", [[floats(2, 1, 3, 2, seed=k), slots, at] for k, (slots, at) in
               enumerate([(ints(0, 2), 5), (ints(2, 3), 6), (ints(-1, 1), -2), (ints(1, 0), 8)])]),
    ("tokens", [[floats(1, 1, 3, 2, seed=k), rows, at] for k, (rows, at) in
                enumerate([(ints(0, 2, 2), ints(7, 8, 0)), (ints(3, -1, 1), ints(0, 0, -1)),
                           (ints(0, 0, 1), ints(8, 7, 20))])]),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "given"), CALLS, ids=[name for name, _ in CALLS])
def test_writes_past_the_end(run: Runner, entry: str, given: list[list[Any]]) -> None:
    model = run.load(CACHE, weights={"table": TABLE})
    unchecked(model, entry)
    program = linnet.load_program(run.folder / "program.linnet")
    sizes = {"Rows": 3, "S": 8, "D": 2, "V": 5, "Size": 4}
    oracle = Evaluator(program, root="program::Main", generics=sizes, params={"table": TABLE})
    full = floats(3, 8, 2, seed=99)
    model.run_entry("span", [full, 0])
    oracle.run("program::Main.span", [full, 0])
    for inputs in given:
        model.run_entry(entry, inputs)
        oracle.run(f"program::Main.{entry}", inputs)
        held = to_numpy(model.state("cache"))
        np.testing.assert_array_equal(held, oracle.state["cache"], str(inputs))


POSITIONS = """
use std.nn.cache::{write_span}
pub block Main {
    state cache: Tensor[1, 1, 6, 2; f32]
    pub entry grow(x: Tensor[1, 1, 2, 2; f32], steps: i32) -> Tensor[6, 2; f32] {
        var at: i32 = -1
        while at < steps {
            cache = write_span(cache, x + cast<f32>(at), at)
            at = at + 2
        }
        return cache[0, 0]
    }
}
"""


def test_positions_that_the_program_makes(run: Runner) -> None:
    """Nobody can be told beforehand: the loop runs past both ends."""
    model = run.load(POSITIONS)
    x = floats(1, 1, 2, 2)
    want = np.zeros((6, 2), np.float32)
    for at in range(-1, 9, 2):
        for k in range(2):
            if 0 <= at + k < 6:
                want[at + k] = x[0, 0, k] + np.float32(at)
    np.testing.assert_allclose(to_numpy(model.run_entry("grow", [x, 9])), want, rtol=1e-6)
