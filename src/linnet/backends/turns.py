"""One call of a model at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from linnet.backends.errors import StateError


class Turns:
    """A model's lock. Threads wait for each other; the thread that holds it may take it again, but
    not begin a call inside a call, which would meet a state that is half changed or memory that is
    bound to the other one: a signal's handler or a finaliser could."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._running = False

    @contextmanager
    def one(self, what: str) -> Iterator[None]:
        """Holds the lock for `what`, a call or a change of the state. Raises `StateError` inside
        another such."""
        with self.lock:
            if self._running:
                raise StateError(
                    f"{what} began inside a call of the same thread, as a signal's handler may "
                    "make it: a model runs one at a time"
                )
            try:
                self._running = True
                yield
            finally:
                self._running = False
