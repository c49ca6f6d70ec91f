"""`linnet fmt`: the one style."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from linnet.cli.inspect import read_source
from linnet.cli.output import show_diagnostics
from linnet.diagnostics import CompileError, SourceFile
from linnet.diagnostics.escape import escape_text
from linnet.packages.files import MAX_SOURCE_BYTES, decode_source
from linnet.packages.walk import source_files


@click.command()
@click.option("--check", "only_check", is_flag=True, help="Change nothing; fail if it would.")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH... | -",
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
)
def command(paths: tuple[Path, ...], only_check: bool) -> int:
    """Format files, or every file of a folder, in place; `-` formats standard input to output.

    A file with syntax errors is left alone and its errors are shown. Exits with 0 when all is
    well, 1 when a file has errors or (with --check) is not formatted, 2 on misuse.
    """
    if Path("-") in paths:
        if len(paths) > 1:
            raise click.UsageError("`-` stands alone")
        return _stdin(only_check)
    files, problems = source_files(paths)
    changed = 0
    for path in files:
        try:
            changed += _file(path, only_check)
        except CompileError as error:
            problems.extend(error.diagnostics)
    if problems:
        show_diagnostics(problems, err=True)
    word = "would be reformatted" if only_check else "reformatted"
    click.echo(f"{changed} {word}, {len(files) - changed} left as they are", err=True)
    return int(bool(problems) or (only_check and changed > 0))


def _stdin(only_check: bool) -> int:
    data = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
    if len(data) > MAX_SOURCE_BYTES:
        raise click.UsageError(f"standard input has more than {MAX_SOURCE_BYTES:,} bytes")
    file, problem = decode_source("<stdin>", data)
    if problem is not None:
        raise CompileError((problem,))
    result = formatted(file)
    if only_check:
        return int(result != file.text)
    sys.stdout.buffer.write(result.encode())
    sys.stdout.buffer.flush()
    return 0


def _file(path: Path, only_check: bool) -> bool:
    """Format one file; whether it was not formatted before."""
    file = read_source(path)
    result = formatted(file)
    if result == file.text:
        return False
    if only_check:
        click.echo(f"would reformat {escape_text(file.path, 4096)}")
    else:
        _replace(path, result)
        click.echo(f"reformatted {escape_text(file.path, 4096)}")
    return True


def formatted(file: SourceFile) -> str:
    """The file's text in the one style; raises `CompileError` when it does not parse."""
    from linnet.syntax import format_module

    text, diagnostics = format_module(file)
    if text is None:
        raise CompileError(tuple(diagnostics))
    return text


def _replace(path: Path, text: str) -> None:
    """Write the file whole or not at all, keeping its mode; a link's target is what changes."""
    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as handle:
            handle.write(text)
        Path(name).chmod(target.stat().st_mode & 0o7777)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
