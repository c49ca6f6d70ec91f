"""Indices that only running tells: negative ones are refused, and known ones cost nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import linnet.onnx
from linnet.onnx import Model, RunError

from .support import checked

PROGRAM = """
module m
pub block M {
    param w: Tensor[5, 2; f32]
    state at: Tensor[1; i32]
    state kept: Tensor[4; f32]
    pub entry move(to: i32) -> i32 {
        at = iota<i32>(1) + to
        return to
    }
    pub entry one<N: Dim>(x: Tensor[N; f32]) -> f32 { return x[at[0]] }
    pub entry row<N: Dim>(x: Tensor[N, 2; f32]) -> Tensor[2; f32] { return x[at[0], :] }
    pub entry own<N: Dim>(x: Tensor[N; f32]) -> f32 { return kept[at[0]] + sum[n] x[n] }
    pub entry both<N: Dim>(x: Tensor[N; f32]) -> Tensor[3; f32] {
        let i = iota<i32>(3) + at[0]
        let r[a] = w[i[a], at[0]] + 0.0 * sum[n] x[n]
        return r
    }
    pub entry embed<N: Dim>(tokens: Tensor[N; i32]) -> Tensor[N, 2; f32] {
        let r[n, k] = w[tokens[n], k]
        return r
    }
    pub entry wide<N: Dim>(tokens: Tensor[N; u64]) -> Tensor[N, 2; f32] {
        let r[n, k] = w[tokens[n], k]
        return r
    }
    pub entry known<N: Dim>(bytes: Tensor[N; u8], x: Tensor[N, 4; f32]) -> Tensor[N; f32] {
        let i = max(cast<i32>(bytes), cast<i32>(iota<i64>(N)) * 0) + 1
        let r[n] = w[i[n], 1] + w[iota<i64>(5)[2], 0] + x[n, min(cast<i64>(bytes[n]), 3)]
        return r
    }
}
"""


@pytest.fixture(scope="module", params=["exact", "fast"])
def model(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Model:
    program = checked(tmp_path_factory.mktemp("indices"), PROGRAM)
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    return linnet.onnx.load_model(program, weights={"w": table}, numerics=request.param, threads=1)


@pytest.mark.parametrize("entry", ["one", "row", "own", "both"])
@pytest.mark.parametrize("at", [-1, -4, -5, 4, 2**31 - 1])
def test_an_index_outside_is_refused(model: Model, entry: str, at: int) -> None:
    model.run_entry("move", [at])
    shape = (4, 2) if entry == "row" else (4,)
    said = f"index {at}" if 0 <= at < 2**31 - 1 else "an index"
    with pytest.raises(RunError, match=rf"^{said} is outside .*program.linnet:\d+"):
        model.run_entry(entry, [np.ones(shape, np.float32)])


def test_an_index_inside_is_not(model: Model) -> None:
    model.run_entry("move", [1])
    assert model.run_entry("one", [np.arange(4, dtype=np.float32)]) == 1
    assert model.run_entry("both", [np.ones(4, np.float32)]).tolist() == [3, 5, 7]


@pytest.mark.parametrize("entry", ["embed", "wide"])
def test_a_file_refuses_negative_tokens(model: Model, entry: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    weights = {"w": model.parameters["w"]}
    linnet.onnx.export_model(
        model.binding.program, path, entry=entry, weights=weights, opset=20, numerics="fast"
    )
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    dtype = np.int32 if entry == "embed" else np.uint64
    (made,) = session.run(None, {"tokens": np.array([4, 0], dtype)})
    assert made.tolist() == [[8, 9], [0, 1]]
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, {"tokens": np.array([-1], np.int64).astype(dtype)})


def test_known_indices_need_no_look(model: Model) -> None:
    """Positions, unsigned words and what is made of them; nor inputs that a call has checked."""
    kinds = _operators(model.generated_source("known"))
    assert not {"Less", "Where"} & kinds
    checked_before = _operators(model.generated_source("embed"))
    assert ("Where" in checked_before) == (model._numerics == "exact")


def _operators(text: str) -> set[str]:
    return {node.op_type for node in onnx.parser.parse_model(text).graph.node}
