"""state: which writes of state can happen where it lies.

Needs specialised functions with their natives chosen. A backend keeps each state in storage of its
own: `state_read` gives a view of it, `state_write` copies its operand into it. Marks, in `attrs`:

    native       in_place = True   the operand `update` is overwritten and is the result
    state_write  done = True       the storage holds the value already; nothing to do
    state_read   copy = True       a view would be overwritten while used, or leaves the function

Guarantees that a backend which honours the marks gives the values of the program as written. An
update is in place only when its operand is the state as it was read, nothing that may share its
memory is used later, and the result is written back before anything looks at the state again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.ir.walk import callees_first, walk_regions
from linnet.passes.aliasing import Aliases, Liveness, arrays_of, touches
from linnet.passes.effects import Effects, Pattern, may_meet, pattern, summaries
from linnet.passes.module import Module


def state(module: Module) -> Module:
    """The module with its state operations marked."""
    effects = summaries(module.functions)
    returned: dict[str, frozenset[int]] = {}
    functions: dict[str, Function] = {}
    for name in callees_first(module.functions):
        marks = _Marker(module.functions[name], effects, returned).run()
        returned[name] = marks.returned_params()
        functions[name] = marks.apply()
    return module.with_functions(functions)


@dataclass(slots=True)
class _Marker:
    """Decides one function's marks: assume the best, take back what does not hold, repeat."""

    function: Function
    effects: Mapping[str, Effects]
    returned: Mapping[str, frozenset[int]]
    copied: set[Op] = field(default_factory=set)
    refused: set[Op] = field(default_factory=set)
    in_place: frozenset[Op] = frozenset()
    done: set[Op] = field(default_factory=set)
    aliases: Aliases = field(init=False)
    live: Liveness = field(init=False)
    arrays: dict[SubVar, Ref] = field(init=False)
    paths: dict[Op, Pattern] = field(default_factory=dict)
    rest: dict[Op, tuple[Op, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arrays = arrays_of(self.function)

    def run(self) -> _Marker:
        for region in walk_regions(self.function.body):
            for op in region.ops:
                if op.kind in ("state_read", "state_write"):
                    self.paths[op] = pattern(op.attrs["ref"], self.arrays)
        while self.round():
            pass
        return self

    def round(self) -> bool:
        """One look at the function under the present assumptions; whether one had to go."""
        self.in_place = frozenset(self.candidates())
        self.aliases = Aliases(
            self.function, self.returned, frozenset(self.copied), self.in_place
        ).compute()
        self.live = Liveness(self.aliases).compute()
        refused = {op for op in self.in_place if not self.is_last_use(op)}
        if refused:
            self.refused |= refused
            return True
        self.done = {op for op in self.paths if op.kind == "state_write" and self.is_done(op)}
        copied = self.overwritten() | self.escaping()
        self.copied |= copied
        return bool(copied)

    def candidates(self) -> list[Op]:
        """Updates whose result is written to a state later in the same region."""
        found: list[Op] = []
        for region in walk_regions(self.function.body):
            for place, op in enumerate(region.ops):
                if op.kind != "native" or "update" not in op.attrs or op in self.refused:
                    continue
                rest = region.ops[place + 1 :]
                if any(o.kind == "state_write" and o.operands[0] is op.result for o in rest):
                    self.rest[op] = rest
                    found.append(op)
        return found

    def is_last_use(self, op: Op) -> bool:
        """Whether the update's operand is a state as it was read, nothing that shares its memory
        is used by the other operands or later, and the result is written back."""
        update = op.attrs["update"]
        read = self.aliases.exact.get(op.operands[update])
        if read is None or not self.written_back(op, read):
            return False
        others = {v for k, v in enumerate(op.operands) if k != update}
        used = (self.live.after[op] | others) - {op.result}
        return not any(self.sharing(value, self.paths[read]) for value in used)

    def written_back(self, op: Op, read: Op) -> bool:
        """Whether the result goes to the state it came from before anything looks there."""
        for later in self.rest[op]:
            is_write = later.kind == "state_write" and later.operands[0] is op.result
            if is_write and later.attrs["ref"] == read.attrs["ref"]:
                return True
            if touches(later, self.arrays, self.effects).meets(self.paths[read]):
                return False
        return False

    def sharing(self, value: Value, path: Pattern) -> set[Op]:
        """The reads of states that `path` may be, whose memory `value` may share."""
        origins = self.aliases.of(value)
        return {o for o in origins if isinstance(o, Op) and may_meet(self.paths[o], path)}

    def is_done(self, write: Op) -> bool:
        read = self.aliases.exact.get(write.operands[0])
        return read is not None and read.attrs["ref"] == write.attrs["ref"]

    def overwritten(self) -> set[Op]:
        """Reads whose memory is overwritten while something still uses it."""
        found: set[Op] = set()
        for region in walk_regions(self.function.body):
            for op in region.ops:
                if op in self.done:
                    continue
                used = set(self.live.after[op])
                if op.kind == "state_write":
                    used.add(op.operands[0])  # a view of what it is copied over
                    written = frozenset((self.paths[op],))
                elif op.kind == "call":
                    used.update(op.operands)
                    written = touches(op, self.arrays, self.effects).writes
                else:
                    continue
                for path in written:
                    for value in used:
                        found |= self.sharing(value, path)
        return found - self.copied

    def escaping(self) -> set[Op]:
        """Reads whose memory the function's result may share."""
        origins = self.aliases.union(self.function.body.results)
        return {o for o in origins if isinstance(o, Op)} - self.copied

    def returned_params(self) -> frozenset[int]:
        origins = self.aliases.union(self.function.body.results)
        return frozenset(o for o in origins if isinstance(o, int))

    def apply(self) -> Function:
        marks: dict[Op, str] = dict.fromkeys(self.copied, "copy")
        marks.update(dict.fromkeys(self.in_place, "in_place"))
        marks.update(dict.fromkeys(self.done, "done"))
        if not marks:
            return self.function
        return replace(self.function, body=_marked(self.function.body, marks))


def _marked(region: Region, marks: Mapping[Op, str]) -> Region:
    ops: list[Op] = []
    for op in region.ops:
        if op in marks:
            op = replace(op, attrs=MappingProxyType({**op.attrs, marks[op]: True}))
        elif op.regions:
            op = replace(op, regions=tuple(_marked(r, marks) for r in op.regions))
        ops.append(op)
    return replace(region, ops=tuple(ops))
