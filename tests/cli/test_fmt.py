"""`linnet fmt`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from linnet.cli.app import main

Capture = pytest.CaptureFixture[str]
MESSY = "module   toy\nconst A=1\n"


class Stream:
    """Standard input or output with the bytes beneath it."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)

    def flush(self) -> None:
        pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "toy.linnet"
    path.write_text(MESSY)
    return path


def test_check_changes_nothing(path: Path, capsys: Capture) -> None:
    assert main(["fmt", "--check", str(path)]) == 1
    assert path.read_text() == MESSY
    assert "would reformat" in capsys.readouterr().out


def test_a_file_is_formatted_once(path: Path, capsys: Capture) -> None:
    path.chmod(0o640)
    assert main(["fmt", str(path)]) == 0
    text = path.read_text()
    assert text == "module toy\n\nconst A = 1\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert main(["fmt", "--check", str(path)]) == 0
    assert "1 left as they are" in capsys.readouterr().err
    assert list(path.parent.iterdir()) == [path]


def test_a_file_with_errors_is_left_alone_and_others_go_on(path: Path, capsys: Capture) -> None:
    broken = path.parent / "broken.linnet"
    broken.write_text("module broken\nconst = \n")
    assert main(["fmt", str(path.parent)]) == 1
    assert broken.read_text() == "module broken\nconst = \n"
    assert path.read_text() != MESSY
    assert "E1101" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Stream()
    monkeypatch.setattr("sys.stdin", Stream(MESSY.encode()))
    monkeypatch.setattr("sys.stdout", out)
    assert main(["fmt", "-"]) == 0
    assert out.buffer.getvalue() == b"module toy\n\nconst A = 1\n"


def test_standard_input_stands_alone(path: Path, capsys: Capture) -> None:
    assert main(["fmt", "-", str(path)]) == 2
