"""Which values may share memory with state, and which are live where state is overwritten.

A value's origins are the `state_read`s and parameters whose memory it may be a view of. Only what
the table says are views, natives that say so, and calls that hand a parameter back pass origins on;
every other operation makes a new value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.ir.walk import free_of_op, walk
from linnet.passes.effects import Effects, Pattern, may_meet, pattern
from linnet.types import TensorType

Origin = Op | int  # a state_read, or a parameter's number
NONE: frozenset[Origin] = frozenset()

_VIEWS = frozenset("reshape broadcast permute slice tuple tuple_get struct struct_get some".split())
_BRANCHES = frozenset({"if", "match_optional", "match_enum", "match_sub"})


@dataclass(slots=True)
class Aliases:
    """Origins of one function's values, under the assumption that `copied` reads are copied and
    that the operations of `in_place` give back their operand's memory."""

    function: Function
    returned: Mapping[str, frozenset[int]]  # callee -> parameters its result may share
    copied: frozenset[Op]
    in_place: frozenset[Op]
    origins: dict[Value, frozenset[Origin]] = field(default_factory=dict)
    exact: dict[Value, Op] = field(default_factory=dict)  # the whole state as the read gave it

    def compute(self) -> Aliases:
        for number, param in enumerate(self.function.params):
            self.origins[param.value] = frozenset((number,))
        self.region(self.function.body)
        return self

    def of(self, value: Value) -> frozenset[Origin]:
        return self.origins.get(value, NONE)

    def union(self, values: Iterable[Value]) -> frozenset[Origin]:
        return NONE.union(*map(self.of, values))

    def region(self, region: Region) -> None:
        for op in region.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        if op.kind == "state_read":
            if op not in self.copied:
                self.origins[op.result] = frozenset((op,))
                self.exact[op.result] = op
        elif op.kind in _BRANCHES:
            self.branches(op)
        elif op.regions:
            self.loop(op)
        elif op.kind == "call":
            shared = self.returned.get(op.attrs["callee"], frozenset())
            self.set(op, self.union(op.operands[k] for k in shared))
        elif op.kind == "native":
            self.native(op)
        elif op.kind in _VIEWS or self.is_identity(op):
            self.set(op, self.union(op.operands))

    @staticmethod
    def is_identity(op: Op) -> bool:
        """Operations that a backend may answer with their operand, or a view of it."""
        if op.kind == "cast":
            return op.operands[0].type == op.result.type
        if op.kind == "concat":
            return len(op.operands) == 1
        if op.kind == "gather":  # at scalar places it is a slice
            return all(isinstance(v.type, TensorType) and not v.type.shape for v in op.operands[1:])
        return op.kind == "reduce" and not op.attrs["axes"]

    def set(self, op: Op, origins: frozenset[Origin]) -> None:
        if origins:
            for value in op.results:
                self.origins[value] = origins

    def native(self, op: Op) -> None:
        shared = self.union(op.operands[k] for k in op.attrs.get("alias", ()))
        if op in self.in_place:
            operand = op.operands[op.attrs["update"]]
            shared |= self.of(operand)
            if operand in self.exact:
                self.exact[op.result] = self.exact[operand]
        self.set(op, shared)

    def branches(self, op: Op) -> None:
        for region in op.regions:
            for param in region.params:  # the held value of an optional
                self.origins[param] = self.union(op.operands)
            self.region(region)
        for number, value in enumerate(op.results):
            self.origins[value] = self.union(r.results[number] for r in op.regions)

    def loop(self, op: Op) -> None:
        """Carried values share with what they start as and what an iteration makes of them."""
        carried = op.operands[2:] if op.kind == "for" else op.operands
        found = [self.of(v) for v in carried]
        body = op.regions[-1]
        while True:
            for region in op.regions:
                params = region.params[len(region.params) - len(carried) :]
                self.origins.update(zip(params, found, strict=True))
                self.region(region)
            after = [
                before | self.of(v)
                for before, v in zip(found, body.results[: len(carried)], strict=True)
            ]
            if after == found:
                break
            found = after
        self.origins.update(zip(op.results[: len(carried)], found, strict=True))


@dataclass(slots=True)
class Liveness:
    """For each operation, the values with origins that are used after it. What a loop yields is
    used from each turn on until the loop ends, where all of it is stacked."""

    aliases: Aliases
    after: dict[Op, frozenset[Value]] = field(default_factory=dict)
    yielded: frozenset[Value] = frozenset()

    def compute(self) -> Liveness:
        self.region(self.aliases.function.body, frozenset())
        return self

    def tracked(self, values: Iterable[Value]) -> set[Value]:
        return {value for value in values if self.aliases.of(value)}

    def region(self, region: Region, out: frozenset[Value]) -> set[Value]:
        """Walks a region backward from what is live at its end; gives what is at its start."""
        live = set(out) | self.tracked(region.results)
        for op in reversed(region.ops):
            live.difference_update(op.results)
            self.after[op] = frozenset(live) | self.yielded
            if op.regions:
                inside = self.tracked(free_of_op(op))
                # A loop comes back: what it takes from outside stays live all through it.
                end = frozenset(live if op.kind in _BRANCHES else live | inside)
                outer = self.yielded
                if yields := op.attrs.get("yields", 0):
                    self.yielded |= self.tracked(op.regions[-1].results[-yields:])
                for inner in op.regions:
                    live |= self.region(inner, end) - set(inner.params)
                self.yielded = outer
                live |= inside
            live |= self.tracked(op.operands)
        return live


def arrays_of(function: Function) -> dict[SubVar, Ref]:
    """The array that each loop variable runs over."""
    return {
        op.attrs["var"]: op.attrs["array"] for op in walk(function.body) if op.kind == "for_subs"
    }


@dataclass(frozen=True, slots=True)
class Touches:
    """What an operation, regions included, reads and writes of state."""

    reads: frozenset[Pattern]
    writes: frozenset[Pattern]

    def meets(self, path: Pattern) -> bool:
        return any(may_meet(path, other) for other in self.reads | self.writes)


def touches(op: Op, arrays: Mapping[SubVar, Ref], effects: Mapping[str, Effects]) -> Touches:
    reads: set[Pattern] = set()
    writes: set[Pattern] = set()
    for inner in walk(op):
        if inner.kind == "state_read":
            reads.add(pattern(inner.attrs["ref"], arrays))
        elif inner.kind == "state_write":
            writes.add(pattern(inner.attrs["ref"], arrays))
        elif inner.kind == "call" and inner.attrs.get("receiver") is not None:
            prefix = pattern(inner.attrs["receiver"], arrays)
            known = effects[inner.attrs["callee"]]
            reads.update(prefix + path for path in known.reads)
            writes.update(prefix + path for path in known.writes)
    return Touches(frozenset(reads), frozenset(writes))
