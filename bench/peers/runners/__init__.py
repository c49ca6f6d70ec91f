"""How each engine is loaded and timed. A module here needs its own engine and NumPy alone.

Every module has `open_runner(settings)`, whose result offers `Runner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Settings:
    """What a runner is to load: where the prepared files lie, how exact, on how many threads."""

    files: Path
    precision: str
    threads: int
    positions: int
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Timing:
    """One generation: seconds to the first token, seconds for all others, the tokens."""

    first: float
    rest: float
    tokens: list[int]


class Runner(Protocol):
    def describe(self) -> str:
        """Names and versions of what runs, with the settings that matter."""

    def measure(self, prompt: Sequence[int], new_tokens: int) -> Timing:
        """Greedy generation of one token and `new_tokens` more, from an empty cache."""


class Clock:
    """Times a generation token by token: call it at each token."""

    def __init__(self) -> None:
        self.start = perf_counter()
        self.stamps: list[float] = []
        self.tokens: list[int] = []

    def __call__(self, token: int) -> None:
        self.stamps.append(perf_counter())
        self.tokens.append(token)

    def timing(self) -> Timing:
        first = self.stamps[0] - self.start
        return Timing(first, self.stamps[-1] - self.stamps[0], self.tokens)
