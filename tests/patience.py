"""A guard against work without an end: not a measurement, which a loaded machine would fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT = 60  # seconds of processor time; what should end takes a few at most


@contextmanager
def patient() -> Iterator[None]:
    """Fails where the body takes what only work that grows out of proportion takes."""
    start = time.process_time()
    yield
    assert time.process_time() - start < LIMIT
