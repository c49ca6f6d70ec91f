"""The generated text: readable, one function a method, and no stranger's text gets out of place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch

import linnet.torch
from linnet.backends import names

from .support import checked
from .toy import GENERICS, TOY


def source(tmp_path: Path, entry: str, **generics: int) -> str:
    model = linnet.torch.load(checked(tmp_path, TOY), generics={**GENERICS, **generics})
    return model.generated_source(entry)


def test_a_loop_over_layers_stays_a_loop(tmp_path: Path) -> None:
    text = source(tmp_path, "forward")
    assert "    for layer in block.layers:\n        x = Layer_forward(layer, x)\n" in text
    assert text.count("def Layer_forward(") == 1
    assert text.startswith("# PyTorch code made by linnet from\n")
    assert re.search(r"# program::Layer.forward  .*program.linnet:\d+\ndef Layer_forward", text)


def test_depth_changes_numbers_only(tmp_path: Path) -> None:
    few, many = source(tmp_path, "step", Layers=2), source(tmp_path, "step", Layers=36)
    assert re.sub(r"\d+", "#", few) == re.sub(r"\d+", "#", many)


def test_sizes_are_read_off_inputs(tmp_path: Path) -> None:
    text = """
module m
pub entry run<B: Dim, S: Dim>(x: Tensor[B, S, 4; f32]) -> Tensor[B, 4 * S; f32] {
    return reshape(x, [B, 4 * S])
}
"""
    made = linnet.torch.load(checked(tmp_path, text)).generated_source("run")
    assert "    B, S = x.shape[:2]\n    return x.reshape(B, 4 * S)\n" in made


def test_state_is_written_in_place(tmp_path: Path) -> None:
    text = source(tmp_path, "step")
    assert "write_span(block.cache, x.reshape(2, 1, 1, 4), pos)\n" in text
    assert ".clone()" not in text.split("# program::Layer.step")[1]


ALLOWED = {"torch", "torch.nn.functional", "math", "enum", "typing", "__future__"}


def test_generated_modules_stand_alone(tmp_path: Path) -> None:
    for entry in ("forward", "step", "count_down"):
        tree = ast.parse(source(tmp_path, entry))
        nodes = list(ast.walk(tree))
        plain = [n for n in nodes if isinstance(n, ast.Import)]
        imported = {alias.name for n in plain for alias in n.names}
        imported |= {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
        assert imported <= ALLOWED


HOSTILE = """
module m
// `'''"\\ + \u2028 __import__('os')
pub struct torch { def: Tensor[2; f32], _x: i32 }
pub enum F { None_, name, mro, class }
pub block forward {
    param lambda: Tensor[2; f32]
    param lambda_: Tensor[2; f32]
    param training: Tensor[2; f32]
    param __class__: Tensor[2; f32]
    sub parameters: inner
    sub blocks: inner
    pub entry forward(int: Tensor[2; f32], Device: Tensor[2; f32], print: i32) -> Tensor[2; f32] {
        let torch_ = int + lambda * Device
        let math = torch_ + lambda_ + training + __class__
        let range = parameters.call(math) + blocks.call(int)
        let def = torch(def = range, _x = print)
        let kind = if print > 0 { F.class } else { F.None_ }
        let len: f32 = match kind { F.class => 1.0, _ => 2.0 }
        var tensor = def.def * len
        for zip in 0..print {
            tensor = tensor + 1.0
        }
        return tensor
    }
}
pub block inner {
    param types: Tensor[2; f32]
    state register_buffer: Tensor[2; f32]
    pub fn call(x: Tensor[2; f32]) -> Tensor[2; f32] {
        register_buffer = register_buffer + x
        return x * types + register_buffer
    }
}
"""


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_names_of_python_and_pytorch_are_only_names(tmp_path: Path, numerics: str) -> None:
    program = checked(tmp_path, HOSTILE)
    model = linnet.torch.load(program, root="forward", numerics=numerics)
    keys = ["lambda", "lambda_", "training", "__class__", "parameters.types", "blocks.types"]
    assert list(model.state_dict()) == keys
    with torch.no_grad():
        for k, key in enumerate(keys):
            model.state_dict()[key].fill_(float(k + 1))
    x = torch.tensor([1.0, 2.0])
    inner = x + 1 * x + 2 + 3 + 4
    want = (inner * 5 + inner + x * 6 + x) * 1.0 + 2
    assert torch.equal(model(x, x, 2), want)
    assert sorted(model.state_paths()) == ["blocks.register_buffer", "parameters.register_buffer"]
    model.train()
    model.reset_state()
    assert torch.equal(model(x, x, 2), want)


def test_attribute_names_stay_apart() -> None:
    given = ["lambda", "lambda_", "lambda__", "x", "x_", "__x", "m__x", "mm__x", "m_x", "_", "__"]
    made = [names.attribute(name) for name in given]
    assert len(set(made)) == len(given)
    assert all(name.isidentifier() for name in made)


def test_comments_stay_on_their_line() -> None:
    for text in ("a\nb", "a\r\nb", "a\u2028b", "a\x85b", "a\x0cb", "a\\", "'''", "\x1b[31m"):
        line = f"# {names.comment(text)}"
        assert len(line.splitlines()) == 1
        assert ast.dump(ast.parse(line)) == ast.dump(ast.parse(""))


def test_file_names_cannot_leave_their_comment(tmp_path: Path) -> None:
    folder = tmp_path / "a\nimport os"
    folder.mkdir()
    model = linnet.torch.load(checked(folder, TOY), generics=GENERICS)
    text = model.generated_source("forward")
    assert not re.search(r"^import os", text, re.MULTILINE)
    model(torch.zeros(1, 2, dtype=torch.int32))
