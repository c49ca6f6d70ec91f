"""The generated text: readable, one function a method, and no stranger's text gets out of place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linnet.native
from linnet.native import load
from linnet.native.emit import names
from linnet.native.emit.blocks import Structs
from linnet.native.runtime.profile import table
from linnet.native.toolchain.build import build
from linnet.native.toolchain.compiler import find_toolchain

from ..torch.toy import GENERICS, TOY
from .support import checked


def source(tmp_path: Path, entry: str, **generics: int) -> str:
    model = load(
        checked(tmp_path, TOY), generics={**GENERICS, **generics}, present=["layers.0.gain"]
    )
    return model.generated_source(entry)


def test_a_loop_over_layers_stays_a_loop(tmp_path: Path) -> None:
    model = load(checked(tmp_path, TOY), generics=GENERICS)
    text = model.generated_source("forward")
    assert "for (size_t i = 0; i < 3; ++i) {" in text
    assert text.count("static void Layer_forward(") == 1
    assert "std::array<Layer, 3> layers;" in text
    assert re.search(r"// program::Layer.forward  .*program.linnet:\d+\nstatic void Layer_f", text)


def test_depth_changes_numbers_only(tmp_path: Path) -> None:
    few, many = source(tmp_path, "step", Layers=4), source(tmp_path, "step", Layers=36)
    assert re.sub(r"\d+", "#", few) == re.sub(r"\d+", "#", many)


def test_state_is_written_in_place(tmp_path: Path) -> None:
    text = source(tmp_path, "step")
    assert re.search(r"write_cache\(block\.cache, ", text)
    assert "copy<float>(block.cache" not in text


GATED = """
module m
use std.nn.mlp::{SwiGlu}
pub block Model {
    sub mlp: SwiGlu<32, 48, f32>
    pub entry main<S: Dim>(x: Tensor[S, 32; f32]) -> Tensor[S, 32; f32] {
        return x + mlp.forward(x)
    }
}
"""


def test_a_gated_product_is_one_kernel_and_a_profile_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sizes = {"gate": (48, 32), "up": (48, 32), "down": (32, 48)}
    weights = {
        f"mlp.{name}.weight": rng.standard_normal(size).astype(np.float32) / 6
        for name, size in sizes.items()
    }
    model = load(checked(tmp_path, GATED), root="Model", weights=weights, profile=True)
    x = rng.standard_normal((5, 32)).astype(np.float32)
    gate, up, down = (weights[f"mlp.{name}.weight"] for name in sizes)
    silu = (x @ gate.T) / (1 + np.exp(-(x @ gate.T)))
    for _ in range(2):
        got = model.run_entry("main", [x])
        assert np.allclose(got, x + (silu * (x @ up.T)) @ down.T, atol=1e-4)
    text = model.generated_source("main")
    assert text.count("linnet::linear_silu_mul(") == 1 and "linnet::add(" in text
    (part,) = model.profile("main")
    assert part.calls == 2 and part.seconds >= part.own_seconds > 0
    lines = table(part)
    assert "mlp.forward" in lines and lines.count("linear") == 2


HOSTILE = r"""
module m
// */ */ \
pub struct std { int: Tensor[2; f32], _x: i32 }
pub enum F { None_, NULL, template, class }
pub block Model {
    param class: Tensor[2; f32]
    param class_: Tensor[2; f32]
    param each: Tensor[2; f32]
    param __x__y: Tensor[2; f32]
    param EOF: Tensor[2; f32]
    sub context: inner
    sub blocks: inner
    pub entry main(int: Tensor[2; f32], arena: Tensor[2; f32], printf: i32) -> Tensor[2; f32] {
        let load = int + class * arena
        let at = load + class_ + each + __x__y + EOF
        let operator = context.call(at) + blocks.call(int)
        let auto = std(int = operator, _x = printf)
        let kind = if printf > 0 { F.class } else { F.None_ }
        let copy: f32 = match kind { F.class => 1.0, _ => 2.0 }
        var double = auto.int * copy
        for NULL in 0..printf {
            double = double + 1.0
        }
        return double
    }
}
pub block inner {
    param new: Tensor[2; f32]
    state delete: Tensor[2; f32]
    pub fn call(x: Tensor[2; f32]) -> Tensor[2; f32] {
        delete = delete + x
        return x * new + delete
    }
}
"""


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_names_of_cpp_are_only_names(tmp_path: Path, numerics: str) -> None:
    program = checked(tmp_path, HOSTILE)
    keys = ["class", "class_", "each", "__x__y", "EOF", "context.new", "blocks.new"]
    weights = {key: np.full(2, k + 1, np.float32) for k, key in enumerate(keys)}
    model = load(program, root="Model", weights=weights, numerics=numerics)
    x = np.array([1.0, 2.0], np.float32)
    inner = x + 1 * x + 2 + 3 + 4 + 5
    want = (inner * 6 + inner + x * 7 + x) * 1.0 + 2
    assert np.allclose(model.run_entry("main", [x, x, 2]), want)
    assert sorted(model.state_paths()) == ["blocks.delete", "context.delete"]


def test_long_names_stay_apart() -> None:
    given = names.Names()
    for stem in ("x" * 60, "X" * 60, "x" * 46 + "_a"):
        assert len({given.fresh(stem) for _ in range(20)}) == 20


def test_no_name_is_a_macros(tmp_path: Path) -> None:
    """All that this compiler knows where generated code stands are asked for."""
    toolchain = find_toolchain()
    source = tmp_path / "macros.cpp"
    source.write_text('#include "linnet/support.h"\n')
    root = Path(linnet.native.__file__).parent
    said = subprocess.run(
        [*toolchain.command, *toolchain.flags("fast"), f"-I{root / 'support'}",
         f"-I{root / 'kernels' / 'include'}", "-dM", "-E", str(source)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    macros = set(re.findall(r"^#define ([A-Za-z]\w*)", said, re.MULTILINE))
    assert {"assert", "offsetof", "stdin", "EOF", "NULL"} & macros
    for name in sorted(macros):
        given = names.Names()
        found = [given.fresh(name) for _ in range(5)]
        assert not macros & {*found, Structs(given).member(name)}, name


GLOBAL = (
    "timezone daylight tzname signgam environ tm timespec time_t clock_t lldiv_t div_t uint "
    "max_align_t nullptr_t float_t double_t ssize_t pid_t off_t alloca offsetof strdupa errno "
    "math_errhandling pthread_cleanup_push stdin assert index gamma y0 j1 linnet_model Held"
).split()


def test_names_of_the_systems_headers_are_only_names(tmp_path: Path) -> None:
    """Entries, which the code that Python calls stands beside, are called so, and inputs."""
    tops = "".join(
        f"pub entry {name}({name}_: Tensor[2; f32]) -> Tensor[2; f32] {{\n"
        f"    let y[i] = sum[j] {name}_[j] * {name}_[i]\n    return y\n}}\n"
        for name in GLOBAL
    )
    program = checked(tmp_path, f"module m\n{tops}")
    model = load(program, numerics="exact")
    parts = ['#include "linnet/support.h"']
    for number, name in enumerate(GLOBAL):
        code = re.sub(r"\blinnet_(open|close|bind|run)\b", rf"linnet_\1_{number}",
                      model.generated_source(name))  # fmt: skip
        # Whatever the system's headers have is in the global namespace, where the text stands.
        parts.append(re.sub(r"\blinnet_model\b", f"linnet_model_{number}", code))
    build("\n".join(parts), "exact", ("-O0",))


def test_comments_stay_on_their_line() -> None:
    for text in ("a\nb", "a\r\nb", "a\u2028b", "a\x85b", "a\x0cb", "a\\", "*/", "\x1b[31m", "??/"):
        line = names.comment(text)
        assert len(line.splitlines()) == 1 and not line.endswith("\\")


def test_strings_cannot_end_early() -> None:
    for text in ('a"b', "a\\", "a\nb", "??/", "%n", "\u2028", "\udc80"):
        made = names.quoted(text)
        assert made.isascii() and made[0] == made[-1] == '"'
        assert not re.search(r'[^\\]"', made[1:-1]) and "\n" not in made and "%" not in made


def test_file_names_cannot_leave_their_comment(tmp_path: Path) -> None:
    folder = tmp_path / 'a\n"; int x = system("true"); \\'
    folder.mkdir()
    model = load(checked(folder, TOY), generics=GENERICS, numerics="exact")
    assert not re.search(r"^\"; int x", model.generated_source("forward"), re.MULTILINE)
    model(np.zeros((1, 2), np.int32))
