"""Who reads which value: counted before a function is written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from linnet.ir import Function, Op, Region, Value
from linnet.ir.walk import bodies, walk


@dataclass(slots=True)
class Uses:
    """`left` counts the uses of each value (by id) still to come."""

    left: Counter[int] = field(default_factory=Counter)
    items: defaultdict[int, list[Value]] = field(default_factory=lambda: defaultdict(list))
    item_index: dict[int, int] = field(default_factory=dict)  # which item of its tuple one is
    tail: set[int] = field(default_factory=set)  # what a region ends with and gives
    crossing: set[int] = field(default_factory=set)  # used in a region inside the one that made it
    makers: dict[int, Op] = field(default_factory=dict)


def count_uses(body: Region, reads: Callable[[Op], Sequence[Value]]) -> Uses:
    """The uses in a function's body, `reads` being the operands that an operation's code takes."""
    uses = Uses()
    _count(uses, reads, body, {}, [0])
    return uses


def _count(
    uses: Uses, reads: Callable[[Op], Sequence[Value]], region: Region, home: dict[int, int],
    serial: list[int],
) -> None:  # fmt: skip
    number = serial[0]
    serial[0] += 1
    for value in region.params:
        home[value.id] = number
    for op in region.ops:
        if op.kind == "tuple_get":
            uses.items[op.operands[0].id].append(op.results[0])
            uses.item_index[op.results[0].id] = op.attrs["index"]
        _add(uses, reads(op), home, number)
        for inner in op.regions:
            _count(uses, reads, inner, home, serial)
        for value in op.results:
            home[value.id] = number
            uses.makers[value.id] = op
    _add(uses, region.results, home, number)
    if region.ops and len(region.results) == 1 and region.ops[-1].results == region.results:
        uses.tail.add(region.results[0].id)


def _add(uses: Uses, values: Iterable[Value], home: Mapping[int, int], number: int) -> None:
    for value in values:
        uses.left[value.id] += 1
        if home.get(value.id, number) != number:
            uses.crossing.add(value.id)


class Touching(Protocol):
    """What is known of a function that is called."""

    @property
    def touched(self) -> Touched: ...


@dataclass(frozen=True, slots=True)
class Touched:
    """What a function, with all it calls, does with its block: reads its parameters, reads or
    writes its states, or lets a kernel write a value's own memory."""

    params: bool = False
    state: bool = False
    writes: bool = False
    in_place: bool = False

    @property
    def block(self) -> bool:
        """Whether it needs its block where states lie in it beside the parameters."""
        return self.params or self.state

    @property
    def changes(self) -> bool:
        """Whether it changes state, by itself or through a kernel."""
        return self.writes or self.in_place


def touched(function: Function, known: Mapping[str, Touching]) -> Touched:
    """`known` holds the functions that it may call, by name."""
    params = state = writes = in_place = False
    for op in chain.from_iterable(map(walk, bodies(function))):
        params |= op.kind in ("param", "match_sub", "for_subs")
        state |= op.kind in ("state_read", "state_write")
        writes |= op.kind == "state_write"
        in_place |= bool(op.attrs.get("in_place"))
        if op.kind == "call":
            callee = known[op.attrs["callee"]].touched
            params, state = params or callee.params, state or callee.state
            writes, in_place = writes or callee.writes, in_place or callee.in_place
    return Touched(params, state, writes, in_place)
