"""The measurements as a Markdown page and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers import results
from bench.peers.contenders import CONTENDERS, GROUPS
from bench.peers.measure import agreement
from bench.peers.plot import Bar, Panel, bars

PRECISIONS = ("f32", "bf16", "int8", "int4")
_TITLES = {
    "bf16": "bf16", "int8": "8 bits", "int4": "4 bits", "f32": "f32",
    "blocks": "4 bits, a GGUF's own blocks", "jax": "JAX, bf16", "onnx": "ONNX Runtime, f32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """Ours and one peer in one run."""

    own: str
    peer: str
    record: Mapping[str, Any]

    @property
    def sides(self) -> tuple[dict[str, Any], dict[str, Any]]:
        found = self.record["results"]
        return found[self.own], found[self.peer]


def render(record_file: Path, folder: Path) -> None:
    """Write `peers.md`, and a plot for each machine, from the newest measurement of each pair on
    each machine: engines are compared within a run, and numbers of two machines never."""
    machines: dict[str, dict[tuple[str, str], Pair]] = {}
    for record in results.read(record_file):
        newest = machines.setdefault(record["machine"], {})
        for own, peer in permutations(record["results"], 2):
            newest[own, peer] = Pair(own, peer, record)
    lines: list[str] = []
    pictures: dict[str, str] = {}
    for machine, newest in machines.items():
        grouped = {name: [newest[key] for key in product(group.ours, group.others) if key in newest]
                   for name, group in GROUPS.items()}  # fmt: skip
        grouped = {name: pairs for name, pairs in grouped.items() if pairs}
        if grouped:
            plot = f"peers{f'-{len(pictures) + 1}' if pictures else ''}.svg"
            pictures[plot] = picture(grouped)
            lines += section(machine, plot, grouped)
    if not pictures:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.md").write_text("\n".join([*_TOP, *lines]) + "\n", "utf-8")
    for plot, drawn in pictures.items():
        (folder / plot).write_text(drawn, "utf-8")


_TOP = """\
# SmolLM2-135M-Instruct beside other engines

Batch 1. The engines of a run take turns, each in a process of its own; best of the rounds, ours
first. A ratio above 1 says that ours is faster. Made by `python -m bench.peers`.""".splitlines()


def section(machine: str, plot: str, groups: Mapping[str, Sequence[Pair]]) -> list[str]:
    """What one machine measured: a table for each run, and what each engine is."""
    last = next(iter(groups.values()))[-1].record
    tokens = f"a prompt of {last['prompt_tokens']} tokens, then {last['new_tokens']} more"
    lines = ["", f"## {machine}", "", f"{last['threads']} threads, {tokens}.", "", f"![]({plot})"]
    lines += ["", "### Ours beside the best peer", "", *best(groups)]
    for name, pairs in groups.items():
        lines += ["", f"### {_TITLES[name]}", "", *table(pairs)]
    abouts = {engine: result["about"] for pairs in groups.values() for pair in pairs
              for engine, result in pair.record["results"].items()}  # fmt: skip
    return [
        *lines,
        "",
        "### What ran",
        "",
        *(f"- `{n}`: {said}" for n, said in sorted(abouts.items())),
    ]


def best(groups: Mapping[str, Sequence[Pair]]) -> list[str]:
    """One line for each of ours: the peer that decodes fastest, and the one that answers first."""
    columns = ("run", "ours", "fastest decode", "tokens/s", "ratio", "soonest first token", "ms",
               "ratio")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    for name, own in ((run, own) for run in groups for own in GROUPS[run].ours):
        peers = [pair for pair in groups[name]
                 if pair.own == own and not CONTENDERS[pair.peer].ours]  # fmt: skip
        if not peers:
            continue
        fast = max(peers, key=lambda pair: max(pair.sides[1]["rate"]))
        soon = min(peers, key=lambda pair: min(pair.sides[1]["first"]))
        rate, their_rate = (max(side["rate"]) for side in fast.sides)
        first, their_first = (min(side["first"]) for side in soon.sides)
        lines.append(
            f"| {_TITLES[name]} | {engine(own)} | {engine(fast.peer)} | "
            f"{rate:.1f} : {their_rate:.1f} | {rate / their_rate:.2f} | {engine(soon.peer)} | "
            f"{first * 1e3:.0f} : {their_first * 1e3:.0f} | {their_first / first:.2f} |"
        )
    return lines


def table(pairs: Sequence[Pair]) -> list[str]:
    """One line a peer."""
    columns = ("ours", "peer", "decode, tokens/s", "ratio", "first token, ms", "ratio",
               "same tokens", "memory, GB/s", "measured")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    for pair in pairs:
        ours, other = pair.sides
        first, rate = min(ours["first"]), max(ours["rate"])
        their_first, their_rate = min(other["first"]), max(other["rate"])
        same = agreement(ours["tokens"], other["tokens"])
        lines.append(
            f"| {engine(pair.own)} | {engine(pair.peer)} | {rate:.1f} : {their_rate:.1f} | "
            f"{rate / their_rate:.2f} | {first * 1e3:.0f} : {their_first * 1e3:.0f} | "
            f"{their_first / first:.2f} | {same} of {len(ours['tokens'])} | "
            f"{max(pair.record['bandwidth']):.1f} | {pair.record['time']} |"
        )
    return lines


def picture(groups: Mapping[str, Sequence[Pair]]) -> str:
    """Decode rate and time to the first token of every engine, as SVG. An engine that was measured
    in several runs shows the middle one of its best values."""
    rates: dict[str, list[float]] = {}
    firsts: dict[str, list[float]] = {}
    records = {id(pair.record): pair.record for pairs in groups.values() for pair in pairs}
    for record in records.values():
        for name, result in record["results"].items():
            rates.setdefault(name, []).append(max(result["rate"]))
            firsts.setdefault(name, []).append(min(result["first"]) * 1e3)
    return bars([
        _panel("decode, tokens per second", rates, most_first=True),
        _panel("time to first token, ms", firsts, most_first=False),
    ])  # fmt: skip


def _panel(title: str, values: Mapping[str, Sequence[float]], most_first: bool) -> Panel:
    groups = []
    for precision in PRECISIONS:
        names = [name for name in values if CONTENDERS[name].precision == precision]
        made = [Bar(engine(n), median(values[n]), CONTENDERS[n].ours) for n in names]
        groups.append((_TITLES[precision], sorted(made, key=_value, reverse=most_first)))
    return title, groups


def _value(bar: Bar) -> float:
    return bar.value


def engine(name: str) -> str:
    """A contender's name without its precision."""
    return name.rpartition("/")[0]
