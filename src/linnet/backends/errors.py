"""What a loaded model raises, apart from load-time errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """A call that does not fit its entry: nothing ran, every state is as it was."""


class StateError(RuntimeError):
    """State that a failed call left half changed, until `reset_state()`, or that a call is at
    while another begins inside it."""


class RunError(RuntimeError):
    """A call that failed part-way: an index outside its axis, an integer divided by zero."""


@contextmanager
def installed(extra: str, *packages: str) -> Iterator[None]:
    """Around a backend's imports: the error for one of its packages that is not there says what
    installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        raise ModuleNotFoundError(
            f"linnet.{extra} needs the package `{error.name}`, which is not installed: "
            f"pip install 'linnet[{extra}]'",
            name=error.name,
        ) from error
