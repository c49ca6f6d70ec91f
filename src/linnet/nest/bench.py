"""How fast a card's model runs on each backend, side by side: what `linnet bench` prints.

Every backend lives in a process of its own, so that its memory is its own, and they take turns, so
that a slow minute of the machine meets all of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import sleep
from typing import Any

from linnet.nest.backend import NATIVE, default_backend
from linnet.nest.bench_bytes import Reads, reads_of
from linnet.nest.bench_memory import Memory
from linnet.nest.bench_worker import Contestant, Request
from linnet.nest.card import Card
from linnet.nest.describe import binding_for
from linnet.nest.errors import fail, quoted
from linnet.nest.fetch import fetch_weights
from linnet.nest.find import find_card
from linnet.nest.loader import find_loader, one_or_all
from linnet.nest.progress import Progress

# The threads of some runtimes spin for a while after their work: the next turn begins after that.
_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class Settings:
    """What is measured. Without backends that is the one that `linnet run` would take;
    `weights_format` is for the native one."""

    backends: tuple[str, ...] = ()
    prompt_tokens: int = 512
    new_tokens: int = 64
    repeat: int = 5
    threads: int | None = None
    dtype: str | None = None
    weights_format: str | None = None
    numerics: str = "fast"

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "new_tokens", "repeat"):
            if getattr(self, name) < 1:
                fail("E5026", f"{name} is {getattr(self, name)}; it has to be 1 or more")
        if self.threads is not None and self.threads < 1:
            fail("E5026", f"threads is {self.threads}; it has to be 1 or more")
        if self.weights_format is not None:
            others = [name for name in self.backends if name != NATIVE]
            if others:
                fail(
                    "E5026",
                    f"a weights format is for the backend `native`, not for {quoted(others[0])}",
                    help="measure the other backends in a run of their own",
                )


@dataclass(slots=True)
class Outcome:
    """One backend's measurements; seconds, a value a round. `error` says why there are none."""

    backend: str
    load: float = 0.0
    start: float = 0.0
    """From nothing to the first token: loading, compiling, the first prompt."""
    first: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)
    """Seconds a token, the mean of one round."""
    peak_memory: int | None = None
    error: str | None = None

    @property
    def measured(self) -> bool:
        return self.error is None and bool(self.first)


@dataclass(frozen=True, slots=True)
class Report:
    """All of a run: bytes a second that memory delivers, bytes that one token reads."""

    model: str
    dtype: str
    threads: int
    settings: Settings
    bandwidth: float
    reads: Reads
    outcomes: tuple[Outcome, ...]


def bench_model(
    model: str | Path | Card,
    settings: Settings = Settings(),
    *,
    generics: Mapping[str, int | str] | None = None,
    weights: Any = None,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure a card's model. Raises `NestError` for what cannot be measured at all; a backend that
    fails has its reason in its outcome."""
    progress = progress or Progress()
    card = find_card(model, cache_dir, progress)
    for backend in settings.backends:
        find_loader(backend)
    bound = _generics(card, settings, generics or {})
    if not settings.backends:
        settings = replace(settings, backends=(_default(settings, bound, progress),))
    if weights is None:
        weights = one_or_all(fetch_weights(card, cache_dir, progress))
    reads = reads_of(card, bound, weights, settings)
    threads = settings.threads or usable_threads()
    requests = [_request(card, backend, bound, weights, settings, threads, cache_dir)
                for backend in settings.backends]  # fmt: skip
    memory = Memory(threads)
    outcomes, bandwidth = _turns(requests, settings, memory, progress)
    return Report(
        card.name, str(bound.get("T", "")), threads, settings,
        bandwidth, reads, tuple(outcomes),
    )  # fmt: skip


def _default(settings: Settings, generics: Mapping[str, int | str], progress: Progress) -> str:
    """The backend that `linnet run` would take."""
    options: dict[str, Any] = {"numerics": settings.numerics}
    if settings.weights_format is not None:
        options["weights_format"] = settings.weights_format
    choice = default_backend(str(generics.get("T", "")) or None, **options)
    if choice.note is not None:
        progress.say(choice.note)
    return choice.backend


def usable_threads() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _generics(
    card: Card, settings: Settings, given: Mapping[str, int | str]
) -> dict[str, int | str]:
    """The card's generics for one row and so many positions."""
    bound = {**card.generics, **given}
    binding = binding_for(card)
    entries = binding.program.entries(binding.block)
    lacking = [name for name in ("prefill", "decode") if name not in entries]
    if lacking or not isinstance(bound.get("Vocab"), int):
        what = f"entry {quoted(lacking[0])}" if lacking else "generic `Vocab`"
        fail("E5026", f"the model {quoted(card.name)} cannot be measured: it has no {what}")
    if settings.dtype is not None:
        bound["T"] = settings.dtype
    needed = settings.prompt_tokens + settings.new_tokens + 1
    limit = bound.get("MaxSeq")
    if isinstance(limit, int) and needed > limit:
        fail(
            "E5026",
            f"{settings.prompt_tokens} and {settings.new_tokens} tokens need {needed} positions, "
            f"and the model has {limit}",
            help="ask for fewer tokens",
        )
    return bound


def _request(
    card: Card, backend: str, bound: Mapping[str, int | str], weights: Any, settings: Settings,
    threads: int, cache_dir: str | Path | None,
) -> Request:  # fmt: skip
    from linnet.nest.run import _positions

    needed = settings.prompt_tokens + settings.new_tokens + 1
    options: dict[str, Any] = {"numerics": settings.numerics}
    if settings.dtype is not None:
        options["cast_dtype"] = True
    if backend == NATIVE:
        options["threads"] = threads
        options["weights_format"] = settings.weights_format
    vocab = bound["Vocab"]
    assert isinstance(vocab, int)
    # Any tokens do: what they are is no matter of speed.
    prompt = tuple(k * 7919 % vocab for k in range(1, settings.prompt_tokens + 1))
    return Request(
        card=card, backend=backend, weights=weights, cache_dir=cache_dir, threads=threads,
        generics={**bound, "Batch": 1, "MaxSeq": _positions(backend, bound, needed)},
        options=options, prompt=prompt, new_tokens=settings.new_tokens,
    )  # fmt: skip


def _turns(
    requests: Sequence[Request], settings: Settings, memory: Memory, progress: Progress
) -> tuple[list[Outcome], float]:
    """Start all, let them take turns, end all. Memory's bandwidth is measured in every round, the
    best is given."""
    outcomes = [Outcome(request.backend) for request in requests]
    running: list[tuple[Contestant, Outcome]] = []
    try:
        for request, outcome in zip(requests, outcomes, strict=True):
            contestant = Contestant(request)
            running.append((contestant, outcome))
            if contestant.loaded(outcome):
                progress.say(f"{request.backend}: first token after {outcome.start:.1f} s")
            else:
                progress.say(f"{request.backend}: {outcome.error}")
        bandwidth = memory.bandwidth()
        for _ in range(settings.repeat):
            bandwidth = max(bandwidth, memory.bandwidth(rounds=1))
            for contestant, outcome in running:
                if outcome.error is None:
                    sleep(_PAUSE)
                    contestant.turn(outcome)
        for contestant, outcome in running:
            contestant.finish(outcome)
    finally:
        for contestant, _ in running:
            contestant.kill()
    return outcomes, bandwidth


__all__ = ["Outcome", "Report", "Settings", "bench_model", "usable_threads"]
