"""`linnet nest` and `linnet run`: what reaches the functions behind them, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linnet import nest
from linnet.cli.app import main

Capture = pytest.CaptureFixture[str]

CARD = """\
[model]
name = "toy"
title = "Toy \\u001b[31m"
summary = "A toy."
license = "MIT"
family = "toy"

[source]
path = "src/lib.linnet"
root = "Scale"
entry = "forward"

[generics]
N = 4

[weights]
files = ["model.safetensors"]
"""
SOURCE = """\
module toy

pub block Scale<N: Dim> {
    param weight: Tensor[N; f32]

    pub entry forward<B: Dim>(x: Tensor[B, N; f32]) -> Tensor[B, N; f32] {
        return x * weight
    }
}
"""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    (folder / "src").mkdir(parents=True)
    (folder / "nest.toml").write_text(CARD)
    (folder / "README.md").write_text("# Toy\n")
    (folder / "linnet.toml").write_text('[package]\nname = "toy"\n')
    (folder / "src/lib.linnet").write_text(SOURCE)
    return folder


def test_list(capsys: Capture) -> None:
    assert main(["nest", "list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert main(["nest", "list", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == names
    assert names == [each.name for each in nest.list()]


def test_show(card: Path, capsys: Capture) -> None:
    assert main(["nest", "show", str(card)]) == 0
    out = capsys.readouterr().out
    assert "4 parameters" in out
    assert "\x1b" not in out
    assert main(["nest", "show", "--json", str(card)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["generics"], shown["root"]) == ("toy", {"N": 4}, "Scale")


def test_check(card: Path, capsys: Capture) -> None:
    assert main(["nest", "check", str(card)]) == 0, capsys.readouterr().out
    (card / "src/lib.linnet").write_text(SOURCE.replace("weight\n", "wieght\n"))
    capsys.readouterr()
    assert main(["nest", "check", "--json", str(card)]) == 1
    codes = [each["code"] for each in json.loads(capsys.readouterr().out)["diagnostics"]]
    assert "E1201" in codes
    assert main(["nest", "check", str(card / "nowhere")]) == 2


def test_an_unknown_card_is_said_in_words(capsys: Capture) -> None:
    assert main(["nest", "show", "no-such-card"]) == 1
    assert main(["run", "no-such-card", "hello"]) == 1
    shown = capsys.readouterr()
    assert shown.err.count("error[E5021]") == 2
    assert not shown.out


def test_pull_prints_where_the_files_lie(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture
) -> None:
    def pull(name: str, *, cache_dir: Path | None) -> list[Path]:
        assert (name, cache_dir) == ("toy", tmp_path)
        return [tmp_path / "a.gguf"]

    monkeypatch.setattr(nest, "pull", pull)
    assert main(["nest", "pull", "--cache-dir", str(tmp_path), "toy"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.gguf'}\n"


def test_run_hands_its_options_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def run_model(model: str, prompt: str, **options: object) -> int:
        seen.update(options, model=model, prompt=prompt)
        return 130

    monkeypatch.setattr(nest, "run_model", run_model)
    command = ["run", "toy", "why?", "--max-new-tokens", "3", "--temperature", "0.5", "--raw"]
    assert main([*command, "--seed", "7", "--dtype", "bf16"]) == 130
    assert seen == {
        "model": "toy",
        "prompt": "why?",
        "max_new_tokens": 3,
        "temperature": 0.5,
        "seed": 7,
        "backend": None,
        "dtype": "bf16",
        "numerics": "fast",
        "raw": True,
        "weights": None,
        "cache_dir": None,
    }


@pytest.mark.parametrize(
    "wrong",
    [["--max-new-tokens", "0"], ["--temperature", "-1"], ["--seed", "-1"], ["--dtype", "i32"]],
)
def test_impossible_options_are_misuse(wrong: list[str], capsys: Capture) -> None:
    assert main(["run", "toy", "why?", *wrong]) == 2
