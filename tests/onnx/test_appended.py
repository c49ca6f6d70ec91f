"""A cache's writes and the attention after them as one operator, and when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet.onnx
from linnet.ir.evaluate import Evaluator
from linnet.onnx import InputError

from .support import checked, difference

TEXT = """
module m
use std.nn.attention::{grouped_attention, grouped_attention_rows}
use std.nn.cache::{write_rows, write_span}

pub block Cache<Batch: Dim> where Batch > 0 {
    state keys: Tensor[Batch, 2, 6, 8; f32]
    state values: Tensor[Batch, 2, 6, 8; f32]

    pub entry extend<S: Dim>(q: Tensor[Batch, 4, S, 8; f32], k: Tensor[Batch, 2, S, 8; f32],
        v: Tensor[Batch, 2, S, 8; f32], pos: i32) -> Tensor[Batch, 4, S, 8; f32] {
        keys = write_span(keys, k, pos)
        values = write_span(values, v, pos)
        let places = iota<i32>(6)
        let queries = iota<i32>(S)
        let seen[i, s] = places[s] <= pos + queries[i]
        return grouped_attention(q, keys, values, 0.3, some(seen))
    }

    pub entry rows(q: Tensor[Batch, 4, 1, 8; f32], k: Tensor[Batch, 2, 1, 8; f32],
        v: Tensor[Batch, 2, 1, 8; f32], at: Tensor[Batch; i32]) -> Tensor[Batch, 4, 1, 8; f32] {
        keys = write_rows(keys, k, at)
        values = write_rows(values, v, at)
        let places = iota<i32>(6)
        let seen[b, s] = places[s] <= at[b]
        return grouped_attention_rows(q, keys, values, 0.3, reshape(seen, [Batch, 1, 6]))
    }

    /// The keys before the write are read too.
    pub entry both(q: Tensor[Batch, 4, 1, 8; f32], k: Tensor[Batch, 2, 1, 8; f32],
        v: Tensor[Batch, 2, 1, 8; f32], pos: i32) -> (Tensor[Batch, 4, 1, 8; f32],
        Tensor[Batch, 2, 6, 8; f32]) {
        let before = keys
        keys = write_span(keys, k, pos)
        values = write_span(values, v, pos)
        let places = iota<i32>(6)
        let seen[i, s] = places[s] <= pos + iota<i32>(1)[i]
        let made = grouped_attention(q, keys, values, 0.3, some(seen))
        let changed[b, h, s, d] = keys[b, h, s, d] - before[b, h, s, d]
        return (made, changed)
    }
}
"""


class Both:
    """The block on ONNX Runtime and by the NumPy evaluator, fed the same."""

    def __init__(self, folder: Path, batch: int) -> None:
        program = checked(folder, TEXT)
        self.batch, self.rng = batch, np.random.default_rng(7)
        self.model = linnet.onnx.load_model(
            program, root="Cache", generics={"Batch": batch}, threads=1
        )
        self.state: dict[str, Any] = {}
        block = f"{program.root}::Cache"
        self.oracle = Evaluator(
            program, root=block, generics={"Batch": batch}, params={}, state=self.state
        )
        self.block = block

    def check(self, entry: str, length: int, at: Any) -> None:
        shapes = [(self.batch, heads, length, 8) for heads in (4, 2, 2)]
        given = [*(self.rng.normal(size=s).astype(np.float32) for s in shapes), at]
        got = self.model.run_entry(entry, given)
        want = self.oracle.run(f"{self.block}.{entry}", given)
        pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
        assert all(difference(a, b) <= 2e-5 for a, b in pairs), (entry, length, at)
        for path, value in self.state.items():
            assert difference(self.model.state(path), value) == 0, (path, entry, length, at)


@pytest.mark.parametrize("batch", [1, 3])
def test_prompts_and_steps(tmp_path: Path, batch: int) -> None:
    both = Both(tmp_path, batch)
    for length, at in ((2, 0), (1, 2), (1, 3), (2, 4), (6, 0), (1, 5)):
        both.check("extend", length, at)
    for rows in ([0, 3, 5], [5, 5, 0], [2, 1, 4]):
        both.check("rows", 1, np.array(rows[:batch], np.int32))
    text = both.model.generated_source("rows")
    assert "GroupQueryAttention" in text and "TensorScatter" not in text
    assert ("GroupQueryAttention" in both.model.generated_source("extend")) == (batch == 1)


def test_an_old_value_still_needed_keeps_the_writes(tmp_path: Path) -> None:
    both = Both(tmp_path, 1)
    assert "GroupQueryAttention" not in both.model.generated_source("both")
    for at in (0, 1, 5):
        both.check("both", 1, at)


def test_no_place_outside_reaches_the_operator(tmp_path: Path) -> None:
    both = Both(tmp_path, 1)
    both.check("extend", 2, 0)
    before = both.model.state("keys")
    for length, at in ((2, 5), (1, 6), (1, -1), (7, 0)):
        with pytest.raises(InputError):
            both.check("extend", length, at)
    assert np.array_equal(both.model.state("keys"), before)


def test_places_that_are_not_checked_do_what_the_body_says(tmp_path: Path) -> None:
    """Where the entry's own checks let a place through, the model without assumptions runs."""
    both = Both(tmp_path, 1)
    both.check("extend", 2, 0)
    both.model._bounds.check = lambda signature, checked: None  # type: ignore[method-assign]
    for length, at in ((2, 5), (1, 6), (1, -1), (7, 0), (3, -2), (1, 1)):
        both.check("extend", length, at)
    assert {key[-1] for key in both.model._sessions} == {True, False}
