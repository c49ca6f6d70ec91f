"""What functions do to state: the summary that several passes ask for.

State paths are patterns from a function's own block: a step is a member's or child's name, an
element's number, or `ANY` for whichever element a loop is at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from linnet.ir import Function, Op, Ref, SubVar
from linnet.ir.walk import bodies, callees_first, walk

ANY = "*"
Pattern = tuple[str | int, ...]
NO_PATHS: frozenset[Pattern] = frozenset()


@dataclass(frozen=True, slots=True)
class Effects:
    """`reads` and `writes` are state paths; `block` whether it reaches its own block at all."""

    reads: frozenset[Pattern] = NO_PATHS
    writes: frozenset[Pattern] = NO_PATHS
    block: bool = False

    @property
    def pure(self) -> bool:
        """No state at all: calls with equal arguments on one block give equal results, as long
        as parameters stay the same."""
        return not self.reads and not self.writes


def summaries(functions: Mapping[str, Function]) -> dict[str, Effects]:
    """The effects of each function, those of what it calls included."""
    found: dict[str, Effects] = {}
    for name in callees_first(functions):
        found[name] = summary(functions[name], found)
    return found


def summary(function: Function, known: Mapping[str, Effects]) -> Effects:
    """The effects of one function, those of its callees known."""
    reads: set[Pattern] = set()
    writes: set[Pattern] = set()
    block = False
    arrays: dict[SubVar, Ref] = {}
    for body in bodies(function):
        for op in walk(body):
            if op.kind == "for_subs":
                arrays[op.attrs["var"]] = op.attrs["array"]
                block = True
            elif op.kind in ("param", "match_sub"):
                block = True
            elif op.kind in ("state_read", "state_write"):
                block = True
                target = reads if op.kind == "state_read" else writes
                target.add(pattern(op.attrs["ref"], arrays))
            elif op.kind == "call":
                receiver: Ref | None = op.attrs.get("receiver")
                callee = known[op.attrs["callee"]]
                if receiver is not None:
                    block |= callee.block
                    prefix = pattern(receiver, arrays)
                    reads.update(prefix + path for path in callee.reads)
                    writes.update(prefix + path for path in callee.writes)
    return Effects(frozenset(reads), frozenset(writes), block)


def pattern(ref: Ref, arrays: Mapping[SubVar, Ref]) -> Pattern:
    """A Ref from the function's own block, loops' variables as `ANY`."""
    if ref.root is None:
        return ref.steps
    return (*pattern(arrays[ref.root], arrays), ANY, *ref.steps)


def may_meet(a: Pattern, b: Pattern) -> bool:
    """Whether two patterns can name one state."""
    return len(a) == len(b) and all(x == y or ANY in (x, y) for x, y in zip(a, b, strict=True))


def call_has_effects(effects: Mapping[str, Effects]) -> Callable[[Op], bool]:
    """For `linnet.ir.walk.has_effects` and `drop_dead`: whether a call writes or reads state."""

    def has(op: Op) -> bool:
        known = effects.get(op.attrs["callee"])
        return known is None or not known.pure

    return has


def call_writes(effects: Mapping[str, Effects]) -> Callable[[Op], bool]:
    """Whether a call writes state: one that only reads can be dropped when its result is unused."""

    def has(op: Op) -> bool:
        known = effects.get(op.attrs["callee"])
        return known is None or bool(known.writes)

    return has
