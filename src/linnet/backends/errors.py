"""What a loaded model raises, apart from load-time errors."""

from __future__ import annotations


class InputError(ValueError):
    """A call that does not fit its entry: nothing ran, every state is as it was."""


class StateError(RuntimeError):
    """State that a failed call left half changed, until `reset_state()`."""
