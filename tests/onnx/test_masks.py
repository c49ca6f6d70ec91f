"""Attention under masks that are known: the keys are cut where the mask ends, bodies agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import linnet.onnx

from .support import checked, difference, oracle

HEAD = """
module m
use std.nn.attention::{causal_mask, grouped_attention, grouped_attention_rows}
"""
ENTRY = (
    HEAD
    + """
pub entry run<B: Dim, Q: Dim, K: Dim>(q: Tensor[B, 4, Q, 8; T], k: Tensor[B, 2, K, 8; T],
    v: Tensor[B, 2, K, 8; T], pos: i32) -> Tensor[B, 4, Q, 8; T] {
    let keys = iota<i32>(K)
    let queries = iota<i32>(Q)
    MASK
    return grouped_attention(q, k, v, 0.3, some(m))
}
"""
)
ROWS = (
    HEAD
    + """
pub entry run<K: Dim>(q: Tensor[3, 4, 1, 8; T], k: Tensor[3, 2, K, 8; T],
    v: Tensor[3, 2, K, 8; T], last: Tensor[3; i32]) -> Tensor[3, 4, 1, 8; T] {
    let keys = iota<i32>(K)
    let seen[b, s] = keys[s] <= last[b]
    return grouped_attention_rows(q, k, v, 0.3, reshape(seen, [3, 1, K]))
}
"""
)
MASKS = {
    "from": "let m[i, s] = keys[s] <= pos + queries[i]",
    "upto": "let seen[s] = keys[s] <= pos\n let m = broadcast_to(reshape(seen, [1, K]), [Q, K])",
    "causal": "let m = causal_mask<Q, K>()",
    "window": "let m[i, s] = keys[s] <= pos + queries[i] && keys[s] + 2 > pos + queries[i]",
}
LIMIT = {"f32": 2e-5, "bf16": 2e-2}
DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}


def heads(rng: Any, dtype: str, b: int, q: int, k: int) -> list[Any]:
    shapes = [(b, 4, q, 8), (b, 2, k, 8), (b, 2, k, 8)]
    return [np.array(rng.normal(size=s), DTYPES[dtype]) for s in shapes]


@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize("dtype", list(LIMIT))
def test_one_mask(tmp_path: Path, mask: str, dtype: str) -> None:
    text = ENTRY.replace("MASK", MASKS[mask]).replace("; T]", f"; {dtype}]")
    program = checked(tmp_path, text)
    model = linnet.onnx.load_model(program, threads=1)
    rng = np.random.default_rng(2)
    for b, q, k in ((2, 3, 9), (1, 1, 4), (1, 4, 4)):
        for pos in (-9, -2, 0, 2, 7, 40):
            given = [*heads(rng, dtype, b, q, k), pos]
            want = oracle(program, "run", given)
            got = model.run_entry("run", given)
            assert difference(got, want) <= LIMIT[dtype], (b, q, k, pos)
    assert "Attention" in model.generated_source("run")


@pytest.mark.parametrize("dtype", list(LIMIT))
def test_a_bound_a_row(tmp_path: Path, dtype: str) -> None:
    program = checked(tmp_path, ROWS.replace("; T]", f"; {dtype}]"))
    model = linnet.onnx.load_model(program, threads=1)
    rng = np.random.default_rng(3)
    for last in ([0, 3, 5], [-1, 2, 0], [5, 5, 9], [0, 0, 0]):
        given = [*heads(rng, dtype, 3, 1, 6), np.array(last, np.int32)]
        want = oracle(program, "run", given)
        assert difference(model.run_entry("run", given), want) <= LIMIT[dtype], last
    assert "Slice" in model.generated_source("run")


def test_a_bound_cuts_keys_before_they_are_read(tmp_path: Path) -> None:
    program = checked(tmp_path, ENTRY.replace("MASK", MASKS["upto"]).replace("; T]", "; f32]"))
    source = linnet.onnx.load_model(program).generated_source("run")
    attention = next(line for line in source.splitlines() if "Attention" in line)
    assert "reached" in attention and "bias" not in attention
