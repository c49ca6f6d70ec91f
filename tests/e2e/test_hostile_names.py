"""Names and comments made to break out of generated source stay names and comments."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linnet.torch

from .programs import Runner, floats, same, values

PYTHON = (
    "lambda class def del from import is nonlocal pass raise try with yield_ global assert and or"
).split()
OURS = (
    "torch F math PREPARED self_ len range int float print exec eval __import__ NamedTuple".split()
)


@pytest.mark.parametrize("name", PYTHON + OURS + ["forward", "__class__", "__", "None_", "_linnet"])
def test_a_name_of_every_kind(tmp_path: Path, name: str) -> None:
    run = Runner(tmp_path, "fast")
    text = f"""
    struct {name}_s {{ {name}: Tensor[3; f32] }}
    pub block {name}_b {{
        param {name}: Tensor[3; f32]
        state {name}_kept: Tensor[3; f32]
        pub fn apply({name}: Tensor[3; f32]) -> {name}_s {{
            return {name}_s({name} = {name} * 2)
        }}
    }}
    pub block Main {{
        sub {name}: {name}_b
        sub {name}_all: [{name}_b; 2]
        pub entry {name}_e({name}_x: Tensor[3; f32], {name}_n: i32) -> (Tensor[3; f32], {name}_s) {{
            var {name}_y = {name}.apply({name}_x).{name}
            static for {name}_i in {name}_all {{
                {name}_y = {name}_y + {name}_i.{name}
            }}
            for {name}_j in 0..{name}_n {{
                let {name}_k[{name}_m] = {name}_y[{name}_m] + {name}.{name}[{name}_m]
                {name}_y = {name}_k
            }}
            return ({name}_y, {name}_s({name} = {name}_y))
        }}
    }}
    """
    w = {f"{name}.{name}": floats(3), f"{name}_all.0.{name}": floats(3, seed=1),
         f"{name}_all.1.{name}": floats(3, seed=2)}  # fmt: skip
    x = floats(3, seed=3)
    model = run.load(text, weights=w, root="Main")
    entry = model.entries()[0]
    want = x * 2 + sum(list(w.values())[1:]) + 2 * w[f"{name}.{name}"]
    got = values(model.run_entry(entry, [x, 2]))
    same(got, (want, (want,)), 1e-5)
    ast.parse(model.generated_source(entry))
    assert set(model.state_dict()) == set(w)


def test_items_named_like_what_generated_code_uses(run: Runner) -> None:
    text = """
    fn len<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] { return x + 1 }
    fn range<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] { return len(x) * 2 }
    fn torch<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] { return range(x) - 1 }
    fn lambda<N: Dim>(math: Tensor[N; f32], math_: f32)
        -> Tensor[N; f32] { return torch(math) * math_ }
    pub block forward<N: Dim> {
        param training: Tensor[N; f32]
        param weight: Tensor[N; f32]
        buffer _parameters: Tensor[N; f32]
        state forward: Tensor[N; f32]
        pub entry run_entry(state_dict: Tensor[N; f32]) -> Tensor[N; f32] {
            forward = forward + state_dict
            return lambda(forward, 3.0) + training + weight + _parameters
        }
    }
    """
    w = {"training": floats(2), "weight": floats(2, seed=1), "_parameters": floats(2, seed=2)}
    model = run.load(text, {"N": 2}, w)
    x = floats(2, seed=3)
    want = ((x + 1) * 2 - 1) * 3 + sum(w.values())
    same(values(model.run_entry("run_entry", [x])), want, 1e-5)
    if run.backend == "torch":
        assert model.training is True  # PyTorch's own attribute is not the parameter


BREAKS = [
    '"""',
    "'''",
    "\\",
    "#",
    "\\\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\u2028",
    "\u2029",
    "{x!r}",
    "%s",
    "\0",
]


@pytest.mark.parametrize("text", BREAKS)
def test_comments_do_not_break_out(run: Runner, text: str) -> None:
    escape = f"{text}\n    raise SystemExit('escaped') {text} import os; os._exit(7)".replace(
        "\n", " "
    )
    source = f"""
    /// {escape}
    /** {escape} */
    pub block Main {{
        /// {escape}
        param w: Tensor[2; f32] // {escape}
        /// {escape}
        pub entry main(x: Tensor[2; f32]) -> Tensor[2; f32] {{
            /* {escape} */
            return x * w // {escape}
        }}
    }}
    """
    try:
        model = run.load(source, weights={"w": np.ones(2, np.float32)})
    except linnet.CompileError as error:
        # A carriage return ends a line comment for some; a control character may be refused.
        assert text in "\0\r\x0b\x0c\x1c\x85\u2028\u2029" and "E1" in str(error)
        return
    same(values(model.run_entry("main", [floats(2)])), floats(2))


def test_file_names_do_not_break_out(tmp_path: Path) -> None:
    """The path stands in a comment of the generated text."""
    folder = tmp_path / "a\nraise SystemExit('escaped')\n'''\"\"\" \u2028 b"
    folder.mkdir()
    path = folder / "x.linnet"
    path.write_text(
        "module x\npub entry main(x: Tensor[2; f32]) -> Tensor[2; f32] { return x + 1 }\n"
    )
    model = linnet.torch.load(path)
    same(values(model.run_entry("main", [floats(2)])), floats(2) + 1)
    made = subprocess.run(
        [sys.executable, "-m", "linnet", "torch", str(path), "--entry", "main"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    exec(compile(made.stdout, "generated", "exec"), {"__name__": "generated"})


def test_quotes_of_every_kind_in_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "x.linnet"
    docs = "".join(
        f"/// {text!r} {text}\n" for text in BREAKS if not text.isspace() and text != "\0"
    )
    path.write_text(
        f"module x\n{docs}pub entry lambda(torch: Tensor[2; f32]) -> Tensor[2; f32] "
        "{ return torch }\n",
        encoding="utf-8",
    )
    made = subprocess.run(
        [sys.executable, "-m", "linnet", "torch", str(path), "--entry", "lambda"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in made.stderr
    if made.returncode == 0:
        exec(compile(made.stdout, "generated", "exec"), {"__name__": "generated"})
