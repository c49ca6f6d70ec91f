"""`RotaryEmbedding` where the halves of the tables are seen to be one value; the body elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

import linnet.onnx
from linnet.onnx import export_model

from .support import checked, difference, oracle

HEAD = "module m\nuse std.nn.rope::{rope, rope_rows}\n"
HALVES = (
    HEAD
    + """
pub entry run<B: Dim, S: Dim>(x: Tensor[B, S, 3, 8; T], at: Tensor[S; i32])
    -> Tensor[B, 3, S, 8; T] {
    let angles[s, i] = cast<f32>(at[s]) * (0.3 + 0.1 * cast<f32>(iota<i32>(4)[i]))
    let both = concat(angles, angles, axis = 1)
    return rope(permute(x, [0, 2, 1, 3]), cast<T>(cos(both)), cast<T>(sin(both)))
}
"""
)
TABLES = (
    HEAD
    + """
pub entry run<B: Dim, S: Dim>(x: Tensor[B, 3, S, 8; T], cosines: Tensor[S, 8; T],
    sines: Tensor[S, 8; T]) -> Tensor[B, 3, S, 8; T] {
    return rope(x, cosines, sines)
}
"""
)
ROWS = (
    HEAD
    + """
pub entry run<B: Dim>(x: Tensor[B, 3, 1, 8; T], angles: Tensor[B, 1, 4; f32])
    -> Tensor[B, 3, 1, 8; T] {
    let both = concat(angles, angles, axis = 2)
    return rope_rows(x, cast<T>(cos(both)), cast<T>(sin(both)))
}
"""
)
LIMIT = {"f32": 2e-6, "bf16": 2e-2}
DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}


def run(folder: Path, text: str, dtype: str, inputs: list[Any]) -> tuple[float, str]:
    """How far a loaded model is from the body, and its text."""
    program = checked(folder, text.replace("<T>", f"<{dtype}>").replace("; T]", f"; {dtype}]"))
    model = linnet.onnx.load_model(program, threads=1)
    want = oracle(program, "run", inputs)
    return difference(model.run_entry("run", inputs), want), model.generated_source("run")


def normal(dtype: str, *shape: int) -> Any:
    return np.array(np.random.default_rng(4).normal(size=shape), DTYPES[dtype])


@pytest.mark.parametrize("dtype", list(LIMIT))
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (1, 5), (3, 4), (2, 1), (0, 2), (1, 0)])
def test_equal_halves(tmp_path: Path, dtype: str, batch: int, length: int) -> None:
    at = np.arange(length, dtype=np.int32) * 3 + 1
    gap, text = run(tmp_path, HALVES, dtype, [normal(dtype, batch, length, 3, 8), at])
    assert gap <= LIMIT[dtype]
    assert "RotaryEmbedding" in text


@pytest.mark.parametrize("dtype", list(LIMIT))
def test_tables_of_any_halves(tmp_path: Path, dtype: str) -> None:
    tables = [normal(dtype, 4, 8), normal(dtype, 4, 8) * 2]
    gap, text = run(tmp_path, TABLES, dtype, [normal(dtype, 2, 3, 4, 8), *tables])
    assert gap <= LIMIT[dtype]
    assert "RotaryEmbedding" not in text


@pytest.mark.parametrize("dtype", list(LIMIT))
def test_a_position_a_row(tmp_path: Path, dtype: str) -> None:
    angles = np.random.default_rng(5).normal(size=(3, 1, 4)).astype(np.float32)
    gap, text = run(tmp_path, ROWS, dtype, [normal(dtype, 3, 3, 1, 8), angles])
    assert gap <= LIMIT[dtype]
    assert "RotaryEmbedding" in text


def test_older_opsets_run_the_body(tmp_path: Path) -> None:
    program = checked(tmp_path, HALVES.replace("<T>", "<f32>").replace("; T]", "; f32]"))
    for opset, used in ((22, False), (23, True)):
        model: ir.Model = export_model(program, entry="run", opset=opset)
        assert ("RotaryEmbedding" in {node.op_type for node in model.graph}) == used
