"""Which block `linnet torch` and its like are about, and what the bindings belong to."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import linnet
from linnet.cli.app import main
from linnet.cli.roots import choose_root, split_bindings
from linnet.cli.target import read_target
from linnet.dims import Dim
from linnet.ir import Program

Capture = pytest.CaptureFixture[str]
SOURCE = """\
module toy

pub block One<N: Dim> {
    param weight: Tensor[N; f32]

    pub entry forward<B: Dim>(x: Tensor[B, N; f32]) -> Tensor[B, N; f32] {
        return x * weight
    }

    pub entry only() -> Tensor[N; f32] {
        return weight
    }
}

pub block Two<N: Dim> {
    param weight: Tensor[N; f32]

    pub entry forward(x: Tensor[N; f32]) -> Tensor[N; f32] {
        return x + weight
    }
}

pub entry double(x: f32) -> f32 {
    return x + x
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE)
    return linnet.load_program(path)


def name_of(program: Program, root: str | None, entry: str | None) -> str | None:
    block = choose_root(program, root, entry)
    return None if block is None else block.short_name


def test_the_only_block_that_fits_is_taken(program: Program) -> None:
    assert name_of(program, None, "only") == "One"
    assert name_of(program, "Two", "forward") == "Two"
    assert name_of(program, None, "double") is None


@pytest.mark.parametrize(
    ("root", "entry", "words"),
    [
        (None, "forward", "choose one of `One`, `Two`"),
        (None, "nothing", "no entry `nothing`; its entries: double; those of `One`: .*only"),
        ("Two", "only", "`Two` has no entry `only`; its entries: forward"),
        ("Twoo", "forward", "did you mean `Two`"),
    ],
)
def test_what_does_not_fit_is_misuse(
    program: Program, root: str | None, entry: str, words: str
) -> None:
    with pytest.raises(click.UsageError, match=words):
        choose_root(program, root, entry)


def test_bindings_are_split_between_block_and_entry(program: Program) -> None:
    root = choose_root(program, "One", None)
    assert split_bindings(program, root, ["forward"], {"N": 3, "B": 2}) == (
        {"N": 3},
        {"B": Dim.of(2)},
    )
    with pytest.raises(click.BadParameter, match="no generic `M`; known: B, N"):
        split_bindings(program, root, ["forward"], {"M": 3})


GENERIC = """\
module toy

pub entry square<N: Dim, T: Float, *S: Shape>(x: Tensor[N; T], y: Tensor[*S; f32]) -> Tensor[N; T] {
    return x * x
}
"""
COMMANDS = ["jax", "stablehlo", "onnx", "native", "torch", "explain"]
NEEDED = {"jax": "jax", "stablehlo": "jax", "onnx": "onnx_ir", "torch": "torch"}


@pytest.mark.parametrize("command", COMMANDS)
def test_values_of_every_kind(command: str, tmp_path: Path, capsys: Capture) -> None:
    if not find_spec(NEEDED.get(command, "linnet")):
        pytest.skip(f"{NEEDED[command]} is not installed")
    path = tmp_path / "toy.linnet"
    path.write_text(GENERIC)
    kind = ["--backend", "native"] if command == "explain" else []
    arguments = [command, str(path), "--entry", "square", *kind, "--bind", "N=4"]
    for bound, code, said in [
        (["T=f32", "S=2,3"], 0, ""),
        (["T=f32", "S=2,"], 0, ""),
        (["T=f32", "S=2"], 2, "`S` is a list of sizes, such as S=2,3 (S=2, for a single one)"),
        (["T=4", "S=,"], 2, "`T` is a dtype, such as T=f32, not `4`"),
        (["T=i32", "S=,"], 1, "`T` of `square` takes a dtype out of f16, bf16, f32, f64"),
    ]:
        binds = [part for value in bound for part in ("--bind", value)]
        assert main([*arguments, *binds]) == code, (command, bound)
        err = capsys.readouterr().err
        assert said in err and "bug of linnet" not in err, (command, bound, err)


def test_a_size_takes_no_dtype(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE)
    given = ["torch", str(path), "--entry", "forward", "--root", "One", "--bind"]
    assert main([*given, "N=f32"]) == 2
    assert "`N` is a size, such as N=64, not `f32`" in capsys.readouterr().err
    assert main([*given, "N=2", "--bind", "B=1,2"]) == 2
    assert "`B` is a size, such as B=64, not `1,2`" in capsys.readouterr().err


def test_a_model_folder_brings_its_generics(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "linnet.toml").write_text('[package]\nname = "toy"\n')
    (tmp_path / "src/lib.linnet").write_text(SOURCE)
    (tmp_path / "nest.toml").write_text(
        f'[model]\nname = "{tmp_path.name}"\ntitle = "Toy"\nsummary = "A toy."\n'
        'license = "MIT"\nfamily = "toy"\n'
        '[source]\npath = "src/lib.linnet"\nroot = "One"\nentry = "forward"\n'
        "[generics]\nN = 5\n"
    )
    target = read_target(tmp_path, None, None, {"B": 2})
    assert target.block == "toy::One"
    assert target.generics == {"N": 5}
    assert target.sizes == {"B": Dim.of(2)}
    assert list(target.entries) == ["forward", "only"]
    assert read_target(tmp_path, "Two", "forward", {"N": 3}).generics == {"N": 3}


def test_the_source_of_an_entry(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE)
    arguments = ["torch", str(path), "--entry", "forward", "--root", "One", "--bind", "N=4"]
    assert main(arguments) == 0, capsys.readouterr().err
    text = capsys.readouterr().out
    compile(text, "generated", "exec")
    assert "import torch" in text


def test_a_missing_generic_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE)
    assert main(["torch", str(path), "--entry", "only"]) == 1
    err = capsys.readouterr().err
    assert "`N: Dim`" in err
    assert "Traceback" not in err


def test_optimised_ir(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE)
    command = ["inspect", "--ir", str(path)]
    assert main(command) == 0
    assert "One.forward<N: Dim, B: Dim>" in capsys.readouterr().out
    assert main([*command, "-O", "--root", "Two", "--bind", "N=7"]) == 0
    out = capsys.readouterr().out
    assert "Tensor[7; f32]" in out
    assert "One" not in out
