"""One call of a model at a time."""

from __future__ import annotations

import os
import threading
from weakref import WeakSet

from linnet.backends.errors import StateError


class Turns:
    """A model's lock, and what is known of the state that it guards. Threads wait for each other;
    a call or a change of the state that begins inside a call of the same thread, as a signal's
    handler or a finaliser may make it, would meet a state that is half changed or memory that is
    bound to the other one.

    The lock is taken by `with turns.lock` itself: Python code between the two, such as a context
    manager of our own, could be interrupted with the lock held.
    """

    def __init__(self, has_state: bool, broken: str | None = None) -> None:
        self.lock = threading.RLock()
        self.has_state = has_state
        self.broken = broken  # why the state may be half changed
        self.changing = False  # the holder changes more than the state
        _ALL.add(self)

    def alone(self, what: str, name: object) -> None:
        """Raises `StateError` where this thread holds the lock: `what`, with the name in it, may
        not begin."""
        if self.lock._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks
            raise StateError(
                f"{what.format(name)} began inside a call of the same thread, as a signal's "
                "handler may make it: a model runs one at a time"
            )

    def failed(self, name: str) -> None:
        """Takes note that a call of the entry `name` may have left the state half changed."""
        self.broken = f"an earlier call of `{name}` failed part-way and left the state half changed"

    def whole(self) -> None:
        """Raises `StateError` where the state is half changed."""
        if self.broken is not None:
            raise StateError(f"{self.broken}; call reset_state() first")

    def forked(self) -> None:
        """Called in a child process: lets go of the lock that a thread of the parent held."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
            return
        self.lock, self.changing = threading.RLock(), False
        if self.has_state:
            self.broken = (
                "the process was forked while another thread used the model, and stopped that with "
                "the state perhaps half changed"
            )


_ALL: WeakSet[Turns] = WeakSet()


def _after_fork() -> None:
    """In a child process the threads are gone that held locks, and what they did is half done."""
    for turns in list(_ALL):
        turns.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
