"""`linnet explain`: the table's decisions, call by call."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.cli.app import main

pytest.importorskip("torch")

Capture = pytest.CaptureFixture[str]
SOURCE = """\
module toy

use std.nn.linear::{Linear}

pub op twice(x: f32) -> f32 {
    return x + x
}

pub block Model<In: Dim, Out: Dim> {
    sub layer: Linear<In, Out, f32>
    param scale: Tensor[1; f32]

    pub entry forward<B: Dim>(x: Tensor[B, In; f32]) -> Tensor[B, Out; f32] {
        return layer.forward(x) * twice(scale[0])
    }
}
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE)
    return str(path)


def explain(source: str, capsys: Capture, *options: str) -> list[str]:
    assert main(["explain", source, "--bind", "In=4", "--bind", "Out=3", *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_each_call_has_its_choice(source: str, capsys: Capture) -> None:
    lines = explain(source, capsys)
    at = next(i for i, line in enumerate(lines) if "std.nn.linear::linear(" in line)
    assert ", 4; f32], Tensor[3, 4; f32]" in lines[at]
    assert lines[at + 1].startswith("    linear: chosen")
    at = next(i for i, line in enumerate(lines) if "toy::twice(f32)" in line)
    assert lines[at].endswith("toy.linnet:14:35")
    assert lines[at + 1] == "    body: chosen (the backend has no kernel for it)"


JOINED = """\
module net

use std.nn.linear::{Linear}

pub block Model<In: Dim, Out: Dim, Layers: Dim = 3> {
    sub a: [Linear<In, In, f32>; Layers]
    sub b: Linear<In, Out, f32>
    sub c: Linear<In, Out, f32>

    fn ends<R: Dim>(x: Tensor[R, In; f32]) -> Tensor[R, Out; f32] {
        return b.forward(x) + c.forward(x)
    }

    pub entry last<R: Dim>(x: Tensor[R, In; f32]) -> Tensor[Out; f32] where R > 0 {
        var y = x
        static for layer in a {
            y = layer.forward(y) + exp(cast<f32>(iota<i32>(R)))[0]
        }
        return ends(y)[R - 1, :]
    }
}
"""


@pytest.mark.parametrize("backend", ["torch", "native", "jax"])
def test_what_the_passes_did(tmp_path: Path, capsys: Capture, backend: str) -> None:
    if backend == "jax":
        pytest.importorskip("jax")
    path = tmp_path / "net.linnet"
    path.write_text(JOINED)
    lines = explain(str(path), capsys, "--backend", backend)
    assert "pass rows: 1 calls get fewer rows" in lines
    assert "  net::Model.last: `Model.ends` gets 1 of R rows" in lines
    joined = "pass join: 1 products fewer in a run of each entry" in lines
    assert joined == (backend != "jax")


SOFTMAX = """\
module toy

use std.nn.softmax::{softmax}

pub entry run<B: Dim, N: Dim>(x: Tensor[B, N; f32]) -> Tensor[B, N; f32] {
    return softmax(x)
}
"""
CHOSEN = {"torch": "softmax", "jax": "body", "onnx": "Softmax", "native": "softmax"}
NEEDS = {"torch": "torch", "jax": "jax", "onnx": "onnx_ir", "native": "numpy"}


@pytest.mark.parametrize("backend", CHOSEN)
def test_every_backend_has_its_own_choices(tmp_path: Path, capsys: Capture, backend: str) -> None:
    pytest.importorskip(NEEDS[backend])
    path = tmp_path / "toy.linnet"
    path.write_text(SOFTMAX)
    assert main(["explain", str(path), "--backend", backend]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if "std.nn.softmax::softmax(" in line)
    assert lines[at + 1].startswith(f"    {CHOSEN[backend]}: chosen")


def test_exact_numerics_runs_bodies(source: str, capsys: Capture) -> None:
    lines = explain(source, capsys, "--numerics", "exact")
    assert not [line for line in lines if ": chosen" in line and "body: chosen" not in line]
    assert any("not under exact numerics" in line for line in lines)


OPERATORS = """\
module ops

use std.nn.activations::{silu}

pub entry run<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] { return silu(x) }
"""


def test_a_loaded_onnx_model_has_the_runtimes_operators(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "ops.linnet"
    path.write_text(OPERATORS, encoding="utf-8")
    chosen = {}
    for backend in ("onnx", "onnx_model"):
        assert main(["explain", "--backend", backend, str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        chosen[backend] = [line.split(":")[0].strip() for line in lines if ": chosen" in line]
    assert chosen == {"onnx": ["Swish"], "onnx_model": ["QuickGelu"]}
