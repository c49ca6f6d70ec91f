"""What the native backend raises besides the errors that every backend has."""

from __future__ import annotations

from linnet.backends.errors import RunError


class NativeError(RuntimeError):
    """The machine's code could not be made: no compiler, or one that failed."""


__all__ = ["NativeError", "RunError"]
