"""`linnet init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.cli.app import main
from linnet.packages import read_package

Capture = pytest.CaptureFixture[str]


def test_a_new_package_checks_and_is_formatted(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "my-toy"
    assert main(["init", str(folder)]) == 0
    package, problems = read_package(folder)
    assert not problems
    assert package.name == "my_toy"
    assert main(["check", "--strict", str(folder)]) == 0, capsys.readouterr().out
    assert main(["fmt", "--check", str(folder)]) == 0


def test_nothing_is_overwritten(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "linnet.toml").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "linnet.toml").read_text() == "mine"
    assert not (tmp_path / "src").exists()


@pytest.mark.parametrize("name", ["std", "crate", "1st", "", "a b", "static", "self"])
def test_a_name_that_cannot_be_is_misuse(name: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["init", "--name", name, str(tmp_path / "x")]) == 2
    assert "cannot be a package's name" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_name_may_be_chosen(tmp_path: Path) -> None:
    assert main(["init", "--name", "better", str(tmp_path / "1st")]) == 0
    assert read_package(tmp_path / "1st")[0].name == "better"
