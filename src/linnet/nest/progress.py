"""Progress on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO


class Advance(Protocol):
    def __call__(self, amount: int) -> None: ...


class Progress:
    """Where long work tells how far it is. `quiet` says nothing at all."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.stream = stream if stream is not None else sys.stderr
        self.quiet = quiet
        self.terminal = not quiet and self.stream.isatty()

    def say(self, line: str) -> None:
        """One plain line."""
        if not self.quiet:
            print(line, file=self.stream, flush=True)

    @contextmanager
    def bar(self, what: str, total: int | None) -> Iterator[Advance]:
        """Bytes done so far; `total` is None where the end is not known."""
        if not self.terminal:
            self.say(what if total is None else f"{what} ({size_text(total)})")
            yield lambda amount: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Bar(*columns, console=Console(file=self.stream), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda amount: bar.advance(task, amount)


def size_text(count: int) -> str:
    """`98.4 MB`, as a person reads it."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
