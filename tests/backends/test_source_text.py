"""The text that source backends print: it lints clean, and says where its parts come from."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import linnet
from linnet.backends.emit.imports import STANDARD, Import, import_lines, names_in
from linnet.backends.emit.writer import spaced
from linnet.backends.names import Names

PROGRAM = """
module m
use std.nn.attention::{attention}
use std.nn.cache::{write_at}
use std.nn.norm::{RmsNorm}

pub struct Pair { first: Tensor[2; f32], kind: Kind }
pub enum Kind { Plain, Twice }

pub fn scaled(x: Tensor[2; f32], kind: Kind) -> Tensor[2; f32] {
    return match kind { Kind.Twice => x * 2.0, _ => x }
}
pub fn steep_forward(x: Tensor[2; f32]) -> Tensor[2; f32] { return x * cast<f32>(2) }
pub op steep<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] {
    return x * x
} grad(y, dy) {
    return dy * x * 3.0
}
pub block Layer<H: Dim, MaxSeq: Dim> where H > 0 {
    sub norm: RmsNorm<H, f32>
    param gain: Tensor[H; f32]? = none
    state cache: Tensor[2, 1, MaxSeq, H; f32]
    pub fn step(x: Tensor[2, H; f32], pos: i32) -> Tensor[2, H; f32] {
        cache = write_at(cache, reshape(x, [2, 1, 1, H]), pos)
        let total[b, h] = sum[s] cache[b, 0, s, h]
        let y = norm.forward(x) + total
        return match gain { some(g) => y * g, none => y }
    }
}
pub block Model<H: Dim, MaxSeq: Dim> where H > 0 {
    sub layers: [Layer<H, MaxSeq>; 2]
    pub entry step(x: Tensor[2, H; f32], pos: i32) -> Tensor[2, H; f32] {
        var y = x
        static for layer in layers { y = layer.step(y, pos) }
        return y
    }
    pub entry mixed(x: Tensor[2; f32], turns: i32) -> (Pair, Tensor[2; f32]) {
        let steep_gradient = steep(x) * 2.0
        var y = steep_forward(steep_gradient + steep_gradient * x)
        var left = turns
        while left > 0 { y = y / 3.0  left = left - 1 }
        let kind = if turns > 2 { Kind.Twice } else { Kind.Plain }
        return (Pair(first = y, kind = kind), scaled(y, kind))
    }
    pub entry folded<S: Dim>(x: Tensor[S, 2, H; f32]) -> Tensor[S, 2 * H; f32] {
        return reshape(reshape(x, [S, 2, H]), [S, 2 * H]) + cast<f32>(S)
    }
    pub entry seen<B: Dim, S: Dim>(q: Tensor[B, 2, S, H; f32], mask: Tensor[S, S; bool])
        -> Tensor[B, 2, S, H; f32] {
        return attention(q, q, q, 0.5, some(mask))
    }
}
"""
GENERICS = {"H": 4, "MaxSeq": 8}
ENTRIES = ("step", "mixed", "folded", "seen")


def program(folder: Path) -> linnet.Program:
    path = folder / "program.linnet"
    path.write_text(PROGRAM, encoding="utf-8")
    return linnet.load_program(path)


def torch_texts(folder: Path) -> dict[str, str]:
    pytest.importorskip("torch")
    import linnet.torch

    texts = {}
    for options in ({"numerics": "exact"}, {}, {"trainable": True}):
        model = linnet.torch.load(program(folder), root="Model", generics=GENERICS, **options)
        for entry in ENTRIES:
            texts[f"torch_{entry}_{'_'.join(options)}"] = model.generated_source(entry)
    return texts


def jax_texts(folder: Path) -> dict[str, str]:
    pytest.importorskip("jax")
    import linnet.jax

    texts = {}
    how: tuple[tuple[str, dict[str, Any]], ...] = (
        ("load_source_model", {"numerics": "exact"}),
        ("load_source_model", {}),
    )
    for loader, options in how:
        model = getattr(linnet.jax, loader)(
            program(folder), root="Model", generics=GENERICS, **options
        )
        for entry in ENTRIES:
            texts[f"jax_{entry}_{'_'.join(options)}"] = model.generated_source(entry)
    for entry in ENTRIES:
        single = linnet.jax.load_source(
            program(folder), root="Model", generics=GENERICS, entry=entry
        )
        texts[f"jax_{entry}_alone"] = single.generated_source()
    return texts


@pytest.mark.parametrize("texts", [torch_texts, jax_texts])
def test_generated_modules_lint_clean(texts: Any, tmp_path: Path) -> None:
    """No import, size or local variable that nothing reads; blank lines as people set them."""
    pytest.importorskip("ruff")
    folder = tmp_path / "made"
    folder.mkdir()
    for name, text in texts(tmp_path).items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    rules = "F,E1,E2,E3,E7,W"
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--preview", "--select", rules]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("texts", [torch_texts, jax_texts])
def test_functions_of_one_module_have_names_of_their_own(texts: Any, tmp_path: Path) -> None:
    """A gradient's function is none of the program's, whatever those are called."""
    for name, text in texts(tmp_path).items():
        body = ast.parse(text).body
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = Counter(node.name for node in body if isinstance(node, kinds))
        assert max(found.values()) == 1, (name, found)


def test_only_imports_in_use_are_written() -> None:
    groups = (STANDARD, (Import("torch"), Import("torch.nn.functional", alias="F")))
    text = "def f(x: Callable, n: Sequence):\n    # math\n    return F.relu(x)\n"
    assert import_lines(groups, names_in(text)) == [
        "from collections.abc import Callable, Sequence",
        "",
        "import torch.nn.functional as F",
    ]
    assert import_lines(groups, ()) == []


def test_local_functions_stand_apart() -> None:
    lines = ["    n = 1", "    def f():", "        def g():", "            return n",
             "        return g", "    x = f()"]  # fmt: skip
    assert spaced(lines) == ["    n = 1", "", "    def f():", "        def g():",
                             "            return n", "", "        return g", "",
                             "    x = f()"]  # fmt: skip


def test_inner_names_hide_nothing() -> None:
    outer = Names(["F"])
    assert outer.fresh("step") == "step"
    inner = outer.inner()
    assert [inner.fresh(name) for name in ("step", "F", "x", "x")] == ["step_", "F_", "x", "x_2"]
    assert outer.fresh("x") == "x"
