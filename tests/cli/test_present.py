"""Optional parameters of a model without weights, alike for every command that shows one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

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

pub block Other {
    sub tail: Linear<4, 4, f32>

    pub entry run<B: Dim>(x: Tensor[B, 4; f32]) -> Tensor[B, 4; f32] {
        return tail.forward(x)
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
    "explain onnx": ("explain", "--entry", "forward", "--backend", "onnx"),
    "explain jax_source": ("explain", "--entry", "forward", "--backend", "jax_source"),
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


def test_lines_for_another_block_say_nothing(source: Path, capsys: Capture) -> None:
    """A card's bindings are for its own root."""
    (source.parent / "nest.toml").write_text(CARD, encoding="utf-8")
    names = source.parent / "names.json"
    names.write_text(NAMES, encoding="utf-8")
    given = ["torch", "--entry", "run", "--root", "Other", str(source.parent)]
    assert main(given) == 0
    assert "def Other_run(" in capsys.readouterr().out
    names.unlink()
    assert main(given) == 0


@pytest.mark.parametrize(
    "path", ["head.bios", "a.b", "", "head.weight", "layers.9.bias", "{", "\x1b[2J"]
)
def test_what_is_no_optional_parameter_is_named(source: Path, path: str, capsys: Capture) -> None:
    given = ["torch", "--entry", "forward", "--bind", "Layers=2", str(source)]
    assert main([*given, "--present", path]) == 2
    error = capsys.readouterr().err
    assert "--present names `" in error and "\x1b" not in error
    assert "is no optional parameter of the model (`head.bias`, `layers.0.bias`" in " ".join(
        error.split()
    )


HALF = """\
module half

use std.nn.linear::{Linear}

pub block Inner {
    sub a: Linear<4, 4, f32>
    sub b: Linear<4, 4, f32>? = none

    pub fn forward<B: Dim>(x: Tensor[B, 4; f32]) -> Tensor[B, 4; f32] {
        let y = a.forward(x)
        return match b { some(c) => c.forward(y), none => y }
    }
}

pub block Model {
    sub extra: Inner? = none

    pub entry forward<B: Dim>(x: Tensor[B, 4; f32]) -> Tensor[B, 4; f32] {
        return match extra { some(c) => c.forward(x), none => x }
    }
}
"""
LOADERS = ("linnet.torch.load", "linnet.jax.load_model", "linnet.jax.load_source_model",
           "linnet.onnx.load_model", "linnet.native.load")  # fmt: skip


@pytest.mark.parametrize("path", ["extra.a.bias", "extra.b.weight"])
def test_half_a_block_is_refused(tmp_path: Path, path: str, capsys: Capture) -> None:
    source = tmp_path / "half.linnet"
    source.write_text(HALF, encoding="utf-8")
    said = "names parts of `extra` without `extra.a.weight`, which it needs"
    for command in COMMANDS.values():
        assert main([*command, "--present", path, str(source)]) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    for loader in LOADERS:
        module, _, name = loader.rpartition(".")
        load = getattr(pytest.importorskip(module), name)
        with pytest.raises(ValueError, match=said):
            load(source, present=[path])
        x = np.ones((2, 4), np.float32)
        whole = load(source, present=["extra.a.weight", path.replace("b.weight", "a.bias")])
        assert not np.asarray(whole.run_entry("forward", [x])).any()
        assert np.asarray(load(source).run_entry("forward", [x])).all()


@pytest.mark.parametrize("present", [[["head.bias"]], "head.bias", 3, [None]])
def test_what_is_no_list_of_paths(source: Path, present: Any) -> None:
    for loader in LOADERS:
        module, _, name = loader.rpartition(".")
        load = getattr(pytest.importorskip(module), name)
        with pytest.raises(ValueError, match="`present`"):
            load(source, root="Model", generics={"Layers": 2}, present=present)


def test_a_package_has_its_names_beside_it(tmp_path: Path, capsys: Capture) -> None:
    """For weights; which parameters are there only a card says."""
    (tmp_path / "src").mkdir()
    (tmp_path / "linnet.toml").write_text('[package]\nname = "toy"\nversion = "0.1.0"\n')
    (tmp_path / "src" / "lib.linnet").write_text(SOURCE.partition("pub block Other")[0])
    names = tmp_path / "bindings.json"
    names.write_text("not one of ours", encoding="utf-8")
    given = ["--bind", "Layers=1", str(tmp_path)]
    assert parameters(told(capsys, "stablehlo", *given)) == {"layers.0.weight", "head.weight"}
    names.write_text(NAMES.replace("{i}", "0"), encoding="utf-8")
    weights, made = tmp_path / "w.safetensors", tmp_path / "m.onnx"
    shapes = {"h.0.weight": (4, 4), "h.0.bias": (4,), "head.weight": (4, 4)}
    save_file({name: np.ones(shape, np.float32) for name, shape in shapes.items()}, weights)
    assert told(capsys, "onnx", "--weights", str(weights), "-o", str(made), *given) == ""
    assert made.stat().st_size > 0


def test_lines_for_a_part_of_a_block_say_nothing(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "toy.linnet").write_text(HALF, encoding="utf-8")
    card = CARD.replace("[generics]\nLayers = 2\n", "[generics]\n")
    (tmp_path / "nest.toml").write_text(card, encoding="utf-8")
    names = tmp_path / "names.json"
    for lines, there in (("extra.b.weight", False), ("extra.a.weight", True)):
        names.write_text(f'{{"{lines}": "w", "extra.a.bias": "b"}}', encoding="utf-8")
        shown = told(capsys, "stablehlo", str(tmp_path))
        assert ('"extra.a.bias"' in shown) == ('"extra.a.weight"' in shown) == there
        assert '"extra.b.weight"' not in shown
