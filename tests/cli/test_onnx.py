"""`linnet onnx`: a model as text, or as a file that runs alone."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from linnet.cli.app import main

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("onnx_ir", "onnxruntime"))), reason="ONNX is not installed"
)

TEXT = """
module scaled
use std.nn.linear::{Linear}

pub block Model<N: Dim> {
    sub layer: Linear<N, N, f32>

    pub entry run<B: Dim>(x: Tensor[B, N; f32]) -> Tensor[B, N; f32] {
        return layer.forward(x) * 2.0
    }
}
"""
RUN = """
import sys
import numpy as np
import onnxruntime as ort
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
for rows in (1, 3):
    (result,) = session.run(None, {"x": np.ones((rows, 2), np.float32)})
    assert result.tolist() == [[6.0, 14.0]] * rows, result
assert "linnet" not in sys.modules
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "scaled.linnet"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_text(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["onnx", "--entry", "run", "--bind", "N=2", str(source)]) == 0
    text = capsys.readouterr().out
    assert "Gemm" in text
    assert "layer.weight" in text and "layer.bias" not in text  # as in a file without weights


def test_a_file_with_weights_runs_alone(source: Path, tmp_path: Path) -> None:
    weights, made = tmp_path / "weights.safetensors", tmp_path / "model.onnx"
    save_file({"layer.weight": np.array([[1, 2], [3, 4]], np.float32)}, weights)
    given = ["--bind", "N=2", "--weights", str(weights), "-o", str(made)]
    assert main(["onnx", "--entry", "run", *given, str(source)]) == 0
    subprocess.run([sys.executable, "-c", RUN, str(made)], check=True, timeout=120)


def test_weights_are_for_files(source: Path, tmp_path: Path) -> None:
    given = ["--bind", "N=2", "--weights", str(tmp_path), str(source)]
    assert main(["onnx", "--entry", "run", *given]) == 2


def test_a_file_that_cannot_be_written(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["onnx", "--entry", "run", "--bind", "N=2", str(source), "-o"]
    assert main([*given, str(tmp_path / "no" / "m.onnx")]) == 1
    assert "m.onnx` cannot be written: there is no such folder" in capsys.readouterr().err
    assert main([*given, str(source)]) == 1
    assert "is a file that models are read from" in capsys.readouterr().err
    assert source.read_text(encoding="utf-8") == TEXT


def test_a_size_that_no_input_shows_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "steps.linnet"
    body = "pub entry run<Steps: Dim>() -> i64 { return cast<i64>(Steps) }"
    path.write_text(f"module steps\n{body}\n", encoding="utf-8")
    assert main(["onnx", "--entry", "run", str(path)]) == 1
    assert "`Steps`, which no input's shape gives: give it a value" in capsys.readouterr().err
    assert main(["onnx", "--entry", "run", "--bind", "Steps=3", str(path)]) == 0
