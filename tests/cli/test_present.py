"""Optional parameters of a model without weights, alike for every command that shows one."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.cli.app import main

for name in ("torch", "jax", "onnx_ir"):
    pytest.importorskip(name)

Capture = pytest.CaptureFixture[str]
SOURCE = """\
module toy

use std.nn.linear::{Linear}

pub block Model<Layers: Dim> {
    sub layers: [Linear<4, 4, f32>; Layers]
    sub head: Linear<4, 4, f32>

    pub entry forward<B: Dim>(x: Tensor[B, 4; f32]) -> Tensor[B, 4; f32] {
        var y = x
        static for layer in layers {
            y = layer.forward(y)
        }
        return head.forward(y)
    }
}
"""
CARD = """\
[model]
name = "toy"
title = "Toy"
summary = "Two layers."
license = "MIT"
family = "toy"

[source]
path = "toy.linnet"
root = "Model"
entry = "forward"

[generics]
Layers = 2

[weights]
repo = "nobody/toy"
revision = "0000000000000000000000000000000000000000"
files = ["model.safetensors"]
sha256 = ["0000000000000000000000000000000000000000000000000000000000000000"]
bindings = "names.json"
"""
NAMES = """{
  "layers.{i}.weight": "h.{i}.weight",
  "layers.{i}.bias": "h.{i}.bias",
  "head.weight": "head.weight"
}
"""
COMMANDS = {
    "torch": ("torch", "--entry", "forward"),
    "jax": ("jax", "--entry", "forward"),
    "native": ("native", "--entry", "forward"),
    "stablehlo": ("stablehlo", "--entry", "forward", "--bind", "B=3"),
    "onnx": ("onnx", "--entry", "forward"),
    "explain onnx": ("explain", "--backend", "onnx"),
    "explain jax_source": ("explain", "--backend", "jax_source"),
}
BOTH = ("--present", "layers.{i}.bias", "--present", "head.bias")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def told(capsys: Capture, command: str, *more: str) -> str:
    assert main([*COMMANDS[command], *more]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", list(COMMANDS))
def test_they_are_absent_until_named(source: Path, command: str, capsys: Capture) -> None:
    given = ("--bind", "Layers=2", str(source))
    # How a bias that is used shows: as a block's, as a weight, or among an op's operands.
    read = {"explain onnx": "Tensor[4; f32]", "explain jax_source": "Tensor[4; f32]",
            "jax": "block.bias", "native": "block.bias"}.get(command, "bias")  # fmt: skip
    assert read not in told(capsys, command, *given)
    assert read in told(capsys, command, *BOTH, *given)


def parameters(text: str) -> set[str]:
    paths = {f"layers.{i}.{kind}" for i in range(2) for kind in ("weight", "bias")}
    return {path for path in paths | {"head.weight", "head.bias"} if f'"{path}"' in text}


def test_a_cards_bindings_say_which_are_there(source: Path, capsys: Capture) -> None:
    (source.parent / "nest.toml").write_text(CARD, encoding="utf-8")
    (source.parent / "names.json").write_text(NAMES, encoding="utf-8")
    folder = str(source.parent)
    want = {"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "head.weight"}
    assert parameters(told(capsys, "stablehlo", folder)) == want
    assert parameters(told(capsys, "stablehlo", folder, "--present", "head.bias")) == {
        *want, "head.bias",
    }  # fmt: skip
    shown = told(capsys, "onnx", folder)
    assert "layers.1.bias" in shown and "head.bias" not in shown


def test_what_is_no_parameter_is_named(source: Path, capsys: Capture) -> None:
    given = ["torch", "--entry", "forward", "--bind", "Layers=2", str(source)]
    assert main([*given, "--present", "head.bios"]) == 1
    assert "head.bios" in capsys.readouterr().err


def test_weights_say_it_themselves(source: Path, tmp_path: Path, capsys: Capture) -> None:
    given = ["onnx", "--entry", "forward", "--weights", str(tmp_path), "-o", "m.onnx", str(source)]
    assert main([*given, "--present", "head.bias"]) == 2
    assert "leave --present out" in capsys.readouterr().err
