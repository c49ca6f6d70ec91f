"""What the native backend raises besides the errors that every backend has."""

from __future__ import annotations


class NativeError(RuntimeError):
    """The machine's code could not be made: no compiler, or one that failed."""


class RunError(RuntimeError):
    """A call that failed part-way: an index out of range, an integer divided by zero."""
