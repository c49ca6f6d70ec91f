"""Compilers at work side by side, all of which end when one fails or somebody presses Ctrl-C.

Whoever has work done by others opens `Workers`; what they run through `run_command` belongs to
them, and so do workers that they open themselves. Leaving `Workers` by any error stops what has not
begun and ends the processes that have, so that files can be put away right after.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from linnet.native.errors import NativeError

T = TypeVar("T")
R = TypeVar("R")
_GRACE_SECONDS = 2.0  # in which a compiler removes its own temporary files


class Group:
    """Processes that end together, those of groups inside it too."""

    def __init__(self, outer: Group | None = None) -> None:
        self._lock = Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._inner: set[Group] = set()
        self._outer = outer
        self.stopped = False
        if outer is not None:
            outer._enter(self)

    def start(self, command: Sequence[str], **options: object) -> subprocess.Popen[str]:
        """Starts a process. Raises `NativeError` once the group has been stopped, and `OSError`."""
        with self._lock:
            if self.stopped:
                raise NativeError("compiling was stopped")
            process = _started(command, options)
            self._running.add(process)
        return process

    def ended(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._running.discard(process)

    def stop(self) -> None:
        """Ends what runs, and lets nothing more begin."""
        with self._lock:
            self.stopped = True
            running, inner = list(self._running), list(self._inner)
        for process in running:
            _signal(process, signal.SIGTERM)
        for group in inner:
            group.stop()
        for process in running:
            _insist(process)

    def close(self) -> None:
        if self._outer is not None:
            with self._outer._lock:
                self._outer._inner.discard(self)

    def _enter(self, group: Group) -> None:
        with self._lock:
            self._inner.add(group)
            group.stopped = self.stopped


_current: ContextVar[Group | None] = ContextVar("linnet_compilers", default=None)


class Workers:
    """Threads that compile. `with Workers(n) as workers:` waits for all of them at its end; an
    error inside it, Ctrl-C among them, stops them first."""

    def __init__(self, most: int) -> None:
        self._group = Group(_current.get())
        self._pool = ThreadPoolExecutor(max(most, 1))

    def __enter__(self) -> Self:
        return self

    def submit(self, call: Callable[..., R], *args: Any) -> Future[R]:
        context = copy_context()
        context.run(_current.set, self._group)
        return self._pool.submit(context.run, call, *args)

    def map(self, call: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Every result, in the order of the items. Raises an error as soon as there is one."""
        futures = [self.submit(call, item) for item in items]
        for future in wait(futures, return_when=FIRST_EXCEPTION).done:
            future.result()
        return [future.result() for future in futures]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if kind is not None:
            self._group.stop()
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        self._group.close()


def run_command(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float
) -> tuple[int, str]:
    """A command's exit code and what it said, on stderr rather than on stdout. Raises `OSError`,
    `subprocess.TimeoutExpired`, and `NativeError` where its workers have been stopped."""
    group = _current.get() or Group()
    process = group.start(command, cwd=folder, env=environment)
    try:
        out, said = process.communicate(timeout=seconds)
    except BaseException:
        _end(process)
        raise
    finally:
        group.ended(process)
    if group.stopped:
        raise NativeError("compiling was stopped")
    return process.returncode, said or out


def _started(command: Sequence[str], options: dict[str, object]) -> subprocess.Popen[str]:
    # A group of its own, as compilers run others: all of them are to end.
    own = {} if sys.platform == "win32" else {"process_group": 0}
    made: subprocess.Popen[str] = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", **own, **options,
    )  # type: ignore[call-overload]  # fmt: skip
    return made


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a process and waits for it."""
    _signal(process, signal.SIGTERM)
    _insist(process)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _insist(process: subprocess.Popen[str]) -> None:
    """Kills a process that was told to end and does not."""
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    if sys.platform == "win32":
        process.terminate()
        return
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:  # reaped ones' numbers may be others'
            os.killpg(process.pid, number)
