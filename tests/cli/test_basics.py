"""The command line itself: help, misuse, exit codes, and what an error looks like."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import linnet
from linnet.cli import app, check
from linnet.cli.app import main
from linnet.diagnostics import InternalError

Capture = pytest.CaptureFixture[str]
COMMANDS = [
    "bench", "check", "explain", "fmt", "init", "inspect", "jax", "native", "nest", "onnx", "run",
    "stablehlo", "torch",
]  # fmt: skip


def test_help_names_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {command} " in out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == 0
    assert f"Usage: linnet {command}" in capsys.readouterr().out


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert linnet.__version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["check"],
        ["check", "no_such_file.linnet"],
        ["check", "--nonsense", "x"],
        ["inspect", __file__],
        ["inspect", "-O", "--ast", __file__],
    ],
)
def test_misuse_is_2(arguments: list[str], capsys: Capture) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert "Error:" in shown.err
    assert not shown.out


def test_no_arguments_show_help_as_misuse(capsys: Capture) -> None:
    assert main([]) == 2
    assert "Usage:" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("no\x1b[31m such thing"), "error: no\\u{1b}[31m such thing\n"),
        (InternalError("parse", "x"), "this looks like a bug"),
        (TypeError("x"), "error: TypeError: x\n"),
        (KeyboardInterrupt(), "interrupted"),
        (ModuleNotFoundError(name="tokenizers"), "help: pip install 'linnet[run]'"),
    ],
)
def test_errors_are_shown_without_a_traceback(
    error: BaseException, shown: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(check.command, "callback", fail)
    monkeypatch.delenv("LINNET_DEBUG", raising=False)
    assert main(["check", __file__]) in (1, 130)
    err = capsys.readouterr().err
    assert shown in err
    assert "Traceback" not in err
    if isinstance(error, Exception):
        monkeypatch.setenv("LINNET_DEBUG", "1")
        assert main(["check", __file__]) == 1
        assert "Traceback" in capsys.readouterr().err


def test_python_m_linnet() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "linnet", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.strip()) == (0, f"linnet, version {linnet.__version__}")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "long.linnet"
    source.write_text("module long\n" + "const A = 1\n" * 20_000)
    command = f"{sys.executable} -m linnet inspect --ast {source} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("Module")
    assert not done.stderr


def test_every_command_module_is_named_in_the_table() -> None:
    assert sorted(app._COMMANDS) == COMMANDS
