"""A backend in a process of its own, measured turn by turn."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from linnet.nest.bench_memory import peak_memory
from linnet.nest.card import Card

if TYPE_CHECKING:
    from linnet.nest.bench import Outcome

_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Request:
    """What one process loads and generates."""

    card: Card
    backend: str
    weights: Any
    cache_dir: str | Path | None
    threads: int
    generics: Mapping[str, int | str]
    options: Mapping[str, Any]
    prompt: tuple[int, ...]
    new_tokens: int


class Contestant:
    """The parent's end. What goes wrong in the process becomes the outcome's `error`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        context = multiprocessing.get_context("spawn")  # a fork would share memory, and threads
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, request), daemon=True)
        with _variables(request.threads):
            self._process.start()
        theirs.close()

    def loaded(self, outcome: Outcome) -> bool:
        """Wait for the model and its first token."""
        said = self._receive(outcome)
        if said is not None:
            outcome.load, outcome.start = said
        return said is not None

    def turn(self, outcome: Outcome) -> None:
        """One generation."""
        said = self._ask("turn", outcome)
        if said is not None:
            outcome.first.append(said[0])
            outcome.decode.append(said[1] / self.request.new_tokens)

    def finish(self, outcome: Outcome) -> None:
        """The most memory it had, at the end."""
        if outcome.error is None:
            outcome.peak_memory = self._ask("end", outcome)

    def kill(self) -> None:
        self._pipe.close()
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()

    def _ask(self, what: str, outcome: Outcome) -> Any:
        try:
            self._pipe.send(what)
        except OSError:
            outcome.error = self._ended()
            return None
        return self._receive(outcome)

    def _receive(self, outcome: Outcome) -> Any:
        try:
            error, said = self._pipe.recv()
        except (EOFError, OSError):
            outcome.error = self._ended()
            return None
        outcome.error = error
        return said

    def _ended(self) -> str:
        self._process.join(5)
        return f"its process ended (exit code {self._process.exitcode})"


@contextlib.contextmanager
def _variables(threads: int) -> Iterator[None]:
    """The environment of a new process: the libraries read their number of threads when loaded."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ |= dict.fromkeys(_VARIABLES, str(threads))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def serve(pipe: Connection, request: Request) -> None:
    """The process: load, tell how long that took, answer until there is nobody to answer."""
    try:
        confine(request.threads)
        started = perf_counter()
        model = _load(request)
        loaded = perf_counter() - started
        if hasattr(model, "prepare"):  # compiles what `linnet run` compiles before its prompt
            model.prepare("prefill", "decode")
        generation(model, request.prompt, 1)
        said = loaded, perf_counter() - started
        generation(model, request.prompt, 2)  # other backends compile a step when it is first run
        pipe.send((None, said))
        while pipe.recv() == "turn":
            pipe.send((None, generation(model, request.prompt, request.new_tokens + 1)))
        pipe.send((None, peak_memory()))
    except (EOFError, KeyboardInterrupt):
        return
    except BaseException as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        with contextlib.suppress(OSError):
            pipe.send((lines[0], None))


def confine(threads: int) -> None:
    """Keep every library to so many processors, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, usable[:threads])


def _load(request: Request) -> Any:
    from linnet.nest.loader import load

    return load(
        request.card, request.backend, generics=request.generics, weights=request.weights,
        cache_dir=request.cache_dir, **request.options,
    )  # fmt: skip


def generation(model: Any, prompt: tuple[int, ...], tokens: int) -> tuple[float, float]:
    """Seconds to the first token of a greedy answer, and for the rest of it."""
    from linnet.nest.generate import generate

    started = first = perf_counter()
    for count, _ in enumerate(generate(model, prompt, tokens)):
        if count == 0:
            first = perf_counter()
    return first - started, perf_counter() - first
