"""One call of a model at a time."""

from __future__ import annotations

import threading

from linnet.backends.errors import StateError


class Turns:
    """A model's lock. Threads wait for each other; a call or a change of the state that begins
    inside a call of the same thread, as a signal's handler or a finaliser may make it, would meet a
    state that is half changed or memory that is bound to the other one.

    The lock is taken by `with turns.lock` itself: Python code between the two, such as a context
    manager of our own, could be interrupted with the lock held.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def alone(self, what: str, name: object) -> None:
        """Raises `StateError` where this thread holds the lock: `what`, with the name in it, may
        not begin."""
        if self.lock._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks
            raise StateError(
                f"{what.format(name)} began inside a call of the same thread, as a signal's "
                "handler may make it: a model runs one at a time"
            )
