"""`linnet check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linnet.cli.app import main

Capture = pytest.CaptureFixture[str]
GOOD = "module toy\n\npub fn double(x: f32) -> f32 {\n    return x + x\n}\n"
UNUSED = GOOD.replace("    return", "    let y = x\n    return")
BROKEN = GOOD.replace("x + x", "x + ")


def write(folder: Path, text: str) -> str:
    path = folder / "toy.linnet"
    path.write_text(text)
    return str(path)


def test_a_good_file_is_0(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", "--strict", write(tmp_path, GOOD)]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "no problems in 1 module\n"


def test_an_error_is_1_with_its_place(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", write(tmp_path, BROKEN)]) == 1
    out = capsys.readouterr().out
    assert "error[E1101]" in out
    assert "toy.linnet:5:1" in out
    assert out.endswith("\n1 error\n")
    assert "\x1b" not in out


def test_a_warning_fails_only_under_strict(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, UNUSED)
    assert main(["check", path]) == 0
    assert "warning[W1002]" in capsys.readouterr().out
    assert main(["check", "--strict", path]) == 1


def test_json(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, BROKEN)
    assert main(["check", "--json", path]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["summary"] == {"errors": 1, "warnings": 0}
    (found,) = result["diagnostics"]
    assert (found["code"], found["severity"]) == ("E1101", "error")
    assert found["start"]["line"] == 5
    assert main(["check", "--json", write(tmp_path, GOOD)]) == 0
    empty = json.loads(capsys.readouterr().out)
    assert empty["diagnostics"] == []


def test_a_package_with_its_modules(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "linnet.toml").write_text('[package]\nname = "toy"\n')
    (tmp_path / "src/lib.linnet").write_text(
        "module toy\n\nuse crate.part::{double}\n\n"
        "pub fn four(x: f32) -> f32 {\n    return double(double(x))\n}\n"
    )
    (tmp_path / "src/part.linnet").write_text(GOOD.replace("toy", "toy.part"))
    assert main(["check", "--strict", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "no problems in 2 modules\n"


def test_a_folder_without_sources_is_a_problem(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", str(tmp_path)]) == 1
    assert "holds no `.linnet` file" in capsys.readouterr().out
