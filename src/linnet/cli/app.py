"""The `linnet` command: finds the sub-command, and turns what goes wrong into an exit code.

Exit codes: 0 all well, 1 problems found, 2 misuse, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from linnet.version import __version__

_COMMANDS = {
    "bench": "linnet.cli.bench",
    "check": "linnet.cli.check",
    "explain": "linnet.cli.explain",
    "fmt": "linnet.cli.fmt",
    "init": "linnet.cli.init",
    "inspect": "linnet.cli.inspect",
    "jax": "linnet.cli.jax",
    "native": "linnet.cli.native",
    "nest": "linnet.cli.nest",
    "onnx": "linnet.cli.onnx",
    "run": "linnet.cli.generate",
    "stablehlo": "linnet.cli.stablehlo",
    "torch": "linnet.cli.torch",
}

# Which extra brings a Python package that a command may miss.
_EXTRAS = {
    "gguf": "run",
    "huggingface_hub": "run",
    "jax": "jax",
    "jinja2": "run",
    "onnx": "onnx",
    "onnx_ir": "onnx",
    "onnxruntime": "onnx",
    "tokenizers": "run",
    "torch": "torch",
}


class LazyGroup(click.Group):
    """A group whose commands are imported by name, so that `check` loads no backend."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = _COMMANDS.get(cmd_name)
        if home is None:
            return None
        command = import_module(home).command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="linnet")
def app() -> None:
    """Check, format, inspect and run Linnet packages and models."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; answers the exit code. No traceback unless `LINNET_DEBUG=1`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        result = app.main(
            args=None if arguments is None else list(arguments),
            prog_name="linnet",
            standalone_mode=False,
        )
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; the flush at exit must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return _failed(error)


def run() -> NoReturn:
    """The console script."""
    sys.exit(main())


def _failed(error: Exception) -> int:
    """Say what went wrong in the words of the error itself."""
    if os.environ.get("LINNET_DEBUG") == "1":
        import traceback

        traceback.print_exc()
        return 1
    from linnet.cli.output import show_diagnostics
    from linnet.diagnostics import CompileError, InternalError
    from linnet.diagnostics.escape import escape_text

    if isinstance(error, CompileError):
        show_diagnostics(error.diagnostics, err=True)
        return 1
    if isinstance(error, ModuleNotFoundError) and error.name in _EXTRAS:
        extra = _EXTRAS[error.name]
        click.echo(
            f"error: this needs the Python package `{error.name}`, which is not installed\n"
            f"help: pip install 'linnet[{extra}]'",
            err=True,
        )
        return 1
    lines = [escape_text(line, 2000) for line in str(error).splitlines() or [""]]
    expected = isinstance(error, (OSError, ValueError, ImportError))
    own = type(error).__module__.startswith("linnet.") and not isinstance(error, InternalError)
    if not expected and not own:
        lines[0] = f"{type(error).__name__}: {lines[0]}"
        lines.append("this looks like a bug of linnet; LINNET_DEBUG=1 shows where it happened")
    click.echo("error: " + "\n".join(lines), err=True)
    return 1
