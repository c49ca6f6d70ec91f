"""Where a call's time goes, read from code that was generated with a profile."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A place in a call: the kernel, or the call of a function, and what it opened.

    `own_seconds` is the time in it and in none of `parts`; both are sums over all calls so far.
    """

    name: str
    calls: int
    own_seconds: float
    parts: tuple[Part, ...]

    @property
    def seconds(self) -> float:
        return self.own_seconds + sum(part.seconds for part in self.parts)


class Node(ctypes.Structure):
    """A row of the profile: `linnet::gen::Profile::Node`."""

    _fields_ = tuple((n, ctypes.c_int64) for n in ("parent", "place", "calls", "nanoseconds"))


def tree(entry: str, nodes: Sequence[Node], places: Sequence[str]) -> Part:
    """The profile's tree; `nodes` lists parents first."""
    below: list[list[Part]] = [[] for _ in nodes]
    for k in range(len(nodes) - 1, -1, -1):
        node = nodes[k]
        name = entry if node.place < 0 else places[node.place]
        part = Part(name, node.calls, node.nanoseconds * 1e-9, tuple(reversed(below[k])))
        if node.parent < 0:
            return part
        below[node.parent].append(part)
    return Part(entry, 0, 0.0, ())


def table(part: Part) -> str:
    """The tree as text: milliseconds and share for each call of the entry, parts below wholes."""
    calls, whole = max(part.calls, 1), max(part.seconds, 1e-12)
    lines = [f"{'ms':>9} {'own ms':>9} {'share':>6} {'times':>7}  place"]

    def visit(each: Part, depth: int) -> None:
        share = each.seconds / whole
        lines.append(
            f"{each.seconds / calls * 1e3:9.3f} {each.own_seconds / calls * 1e3:9.3f} {share:6.1%} "
            f"{each.calls / calls:7.4g}  {'  ' * depth}{each.name}"
        )
        for inner in sorted(each.parts, key=lambda p: -p.seconds):
            visit(inner, depth + 1)

    visit(part, 0)
    return "\n".join(lines)
