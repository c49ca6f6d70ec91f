"""A few engines, turn by turn, with the memory's bandwidth measured in every round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.contenders import CONTENDERS, Contender
from bench.peers.process import Engine, EngineError
from linnet.nest.bench_memory import Memory

# Some engines' threads spin for a while after their work: the next turn begins after that.
_PAUSE = 0.25
# Generations in a row: a virtual machine's host may slow down the memory of a process that waits
# for its turn, the more the longer it waits, which would count for a part of a prompt's time.
_IN_A_ROW = 2

Complaint = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and where the engines and their files are."""

    files: Path
    own_python: Path
    peers_python: Path | None
    prompt: tuple[int, ...]
    new_tokens: int
    threads: int
    rounds: int

    def python(self, contender: Contender) -> Path:
        if contender.home == "own":
            return self.own_python
        if self.peers_python is None:
            raise ValueError(f"{contender.name} needs --peers-python (or LINNET_BENCH_PEERS)")
        return self.peers_python

    def start(self, name: str) -> Engine:
        contender = CONTENDERS[name]
        positions = len(self.prompt) + self.new_tokens + 16
        return Engine(contender, self.python(contender), self.files, self.threads, positions)


@dataclass(slots=True)
class Result:
    """One engine's part: every round's seconds to the first token and tokens a second."""

    about: str
    load: float
    first: list[float]
    rate: list[float]
    tokens: list[int]


def measure_group(plan: Plan, names: Sequence[str], complain: Complaint) -> dict[str, Any] | None:
    """A record: the engines' results by name, and GB/s read before each round. An engine that
    cannot be started or measured is left out, `complain` told why; None when fewer than two are
    left, or the first one is not among them."""
    memory = Memory(plan.threads)
    read = [memory.bandwidth()]
    running: dict[str, tuple[Engine, Result]] = {}
    try:
        for name in names:
            try:
                engine = plan.start(name)
                running[name] = engine, Result(engine.about, engine.load_seconds, [], [], [])
            except (EngineError, ValueError) as error:
                complain(name, str(error))
        for turn in range(plan.rounds + 1):
            read.append(memory.bandwidth(rounds=1))
            for name, (engine, result) in list(running.items()):
                time.sleep(_PAUSE)
                try:
                    _turn(plan, engine, result, keep=turn > 0)  # the first one warms up
                except EngineError as error:
                    complain(name, str(error))
                    running.pop(name)[0].close()
    finally:
        for engine, _ in running.values():
            engine.close()
    if names[0] not in running or len(running) < 2:
        return None
    return {
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "threads": plan.threads,
        "prompt_tokens": len(plan.prompt),
        "new_tokens": plan.new_tokens,
        "bandwidth": [round(rate / 1e9, 2) for rate in read],
        "results": {name: asdict(result) for name, (_, result) in running.items()},
    }


def _turn(plan: Plan, engine: Engine, result: Result, keep: bool) -> None:
    for _ in range(_IN_A_ROW):
        made = engine.measure(plan.prompt, plan.new_tokens)
        result.tokens = made["tokens"]
        if keep:
            result.first.append(made["first"])
            result.rate.append(plan.new_tokens / made["rest"])


def summary(record: dict[str, Any]) -> list[str]:
    """A record as lines of text."""
    (own, ours), *others = record["results"].items()
    low, high = min(record["bandwidth"]), max(record["bandwidth"])
    lines = [f"{own}: {_figures(ours)}, memory {low:.1f}-{high:.1f} GB/s"]
    for name, other in others:
        times = max(ours["rate"]) / max(other["rate"])
        sooner = min(other["first"]) / min(ours["first"])
        same = agreement(ours["tokens"], other["tokens"])
        lines.append(
            f"  {name}: {_figures(other)}; ours x{times:.2f} at decode, x{sooner:.2f} to the first "
            f"token; {same} of {len(ours['tokens'])} tokens the same"
        )
    return lines


def _figures(result: dict[str, Any]) -> str:
    best, middle = max(result["rate"]), median(result["rate"])
    first = min(result["first"]) * 1e3
    return f"{best:.1f} tokens/s (median {middle:.1f}), first after {first:.0f} ms"


def agreement(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens agree before the first that differs."""
    for k, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return k
    return min(len(left), len(right))
