"""Moving the operations of one function to where they need to be done only once.

Each place that operations can move to is a level: 0 the `_once` function, 1 the body, 2 and up the
regions of loops, the innermost last.

    level 0   once(pos):      row = gather(table, pos)
    level 1   rest(x, row):   y = proj(x)
    level 2     loop:           z = mul(y, row)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

from linnet.diagnostics import InternalError
from linnet.ir import Function, Grad, Op, Param, Ref, Region, SubVar, Value
from linnet.ir.walk import free_of_op
from linnet.passes.calls import retarget_region
from linnet.passes.placing import Traits, is_loop, is_trivial, may_be_empty
from linnet.types import Subst, TupleType

# Which parameters a caller's loop leaves alone; None: the call is in no loop.
Invariant = frozenset[int] | None


@dataclass(frozen=True, slots=True)
class Split:
    """A function after motion: `once` is None when nothing moved out of it. `used` are the
    parameters that `once` takes, by number."""

    rest: str
    once: str | None
    used: tuple[int, ...]
    extras: tuple[Value, ...]


class Owner(Protocol):
    """Who splits functions, each once, and keeps what comes of it."""

    @property
    def traits(self) -> Traits: ...

    def original(self, name: str) -> Function:
        """The function as it was."""

    def split(self, name: str, invariant: Invariant, total_only: bool) -> Split:
        """The function with its loops cleared, split for these invariant parameters."""

    def whole(self, name: str) -> str:
        """The function with only its own loops cleared."""

    def add(self, function: Function, suffix: str = "") -> str:
        """Keeps a new version, or part, of a function; gives its name."""


@dataclass(slots=True)
class _Known:
    """A value of the original: the lowest level it could be made at, what makes it again (trivial
    operations only), and its copies by level."""

    level: int
    recipe: Op | None
    copies: dict[int, Value]


@dataclass(frozen=True, slots=True)
class _Here:
    """Where an operation stands: its level, the lowest it may go, the lowest if it can fail."""

    level: int
    floor: int
    firm: int


class Mover:
    """Rebuilds one function, each operation at its level."""

    def __init__(
        self, owner: Owner, function: Function, invariant: Invariant, total_only: bool
    ) -> None:
        self.owner = owner
        self.function = function
        self.invariant = invariant
        self.params = {p.value for p in function.params}
        self.base = 1 if invariant is None else 0
        self.firm = 1 if total_only else self.base
        self.lists: list[list[Op]] = [[], []]
        self.known: dict[Value, _Known] = {}
        self.placed: dict[int, list[_Known]] = {}  # what has a copy at a level of a region
        self.vars: dict[SubVar, int] = {}
        self.extras: list[tuple[Value, Value]] = []  # in `once`, and the parameter in the rest
        self.once_params: dict[int, Value] = {}
        # Calls of `once` functions made so far, by level, callee and arguments: their values.
        self.once_calls: dict[tuple[object, ...], list[Value]] = {}

    def run(self) -> Split:
        function = self.function
        params: list[Param] = []
        for number, param in enumerate(function.params):
            new = _twin(param.value)
            params.append(Param(param.name, new, param.default))
            stays = self.invariant is None or number not in self.invariant
            copies = {1: new}
            if not stays:
                self.once_params[number] = copies[0] = _twin(param.value)
            self.known[param.value] = _Known(1 if stays else 0, None, copies)
        here = _Here(1, self.base, self.firm)
        for op in function.body.ops:
            self.op(op, here)
        results = tuple(self.get(v, 1) for v in function.body.results)
        once, used = self.make_once()
        params += _extra_params(self.extras, {p.name for p in params})
        values = tuple(p.value for p in params)
        body = Region(values if function.body.params else (), tuple(self.lists[1]), results)
        rest = self.owner.add(
            replace(function, params=tuple(params), body=body, grad=self.gradient())
        )
        return Split(rest, once, used, tuple(value for value, _ in self.extras))

    def gradient(self) -> Grad | None:
        grad = self.function.grad
        if grad is None:
            return None
        return replace(grad, body=retarget_region(grad.body, self.owner.whole))

    def make_once(self) -> tuple[str | None, tuple[int, ...]]:
        if not self.extras:
            return None, ()
        ops = list(self.lists[0])
        outs = tuple(value for value, _ in self.extras)
        if len(outs) > 1:
            pair = Value(TupleType(tuple(v.type for v in outs)))
            ops.append(Op("tuple", outs, (pair,), span=self.function.span))
            outs = (pair,)
        needed = {v for op in ops for v in free_of_op(op)} | set(outs)
        used = tuple(k for k, value in self.once_params.items() if value in needed)
        source = self.function
        params = tuple(Param(source.params[k].name, self.once_params[k]) for k in used)
        values = tuple(p.value for p in params)
        body = Region(values if source.body.params else (), tuple(ops), outs)
        once = replace(source, kind="fn", block=None, params=params, body=body, grad=None)
        return self.owner.add(once, "_once"), used

    # --- values ----------------------------------------------------------------------------------

    def get(self, value: Value, level: int) -> Value:
        """The copy of `value` that level `level` can use, made there if it has to be."""
        known = self.known[value]
        seen = range(1, level + 1) if level else range(1)
        for at in seen:
            if at in known.copies:
                return known.copies[at]
        if known.recipe is not None and known.level <= level:
            self.emit(known.recipe, level)
            return known.copies[level]
        if level >= 1 and 0 in known.copies:
            extra = _twin(value)
            self.extras.append((known.copies[0], extra))
            known.copies[1] = extra
            return extra
        raise InternalError("passes.hoist", f"{value!r} is out of reach", value.span)

    def place(self, olds: Sequence[Value], news: Sequence[Value], level: int) -> None:
        """Notes the copies of values that a level has from here on."""
        for old, new in zip(olds, news, strict=True):
            known = self.known[old]
            known.copies[level] = new
            if level > 1:
                self.placed.setdefault(level, []).append(known)

    def emit(self, op: Op, level: int) -> None:
        """A copy of an operation at a level."""
        operands = tuple(self.get(v, level) for v in op.operands)
        results = tuple(map(_twin, op.results))
        self.place(op.results, results, level)
        inside = {v: self.get(v, level) for v in free_of_op(op)} if op.regions else {}
        copy = _Copier(self.owner, inside)
        regions = tuple(map(copy.region, op.regions))
        attrs = copy.attrs(op)
        self.lists[level].append(Op(op.kind, operands, results, attrs, regions, op.span))

    # --- operations ------------------------------------------------------------------------------

    def op(self, op: Op, here: _Here) -> None:
        pure = self.owner.traits.pure(op)
        least = max((self.known[v].level for v in free_of_op(op)), default=self.base)
        least = max(least, self.base, self.block_level(op))
        trivial = is_trivial(op) or op.kind == "param"
        if pure and trivial and all(self.is_cheap(v) for v in op.operands):
            for value in op.results:
                self.known[value] = _Known(least, op, {})
            self.emit(op, here.level)
            return
        target = max(least, here.floor)
        if target < here.firm and not self.owner.traits.total(op):
            target = here.firm
        if pure and target < here.level:
            for value in op.results:
                self.known[value] = _Known(target, None, {})
            self.emit(op, target)
            return
        for value in op.results:
            self.known[value] = _Known(here.level, None, {})
        if op.kind == "call":
            self.call(op, here)
        elif op.regions:
            self.regions(op, here)
        else:
            self.emit(op, here.level)

    def is_cheap(self, value: Value) -> bool:
        """A parameter, or what a trivial operation makes of such."""
        return self.known[value].recipe is not None or value in self.params

    def block_level(self, op: Op) -> int:
        """The lowest level where the block that an operation reaches is known."""
        level = self.base
        for name in ("ref", "receiver", "array"):
            ref = op.attrs.get(name)
            if isinstance(ref, Ref):
                level = max(level, 1 if ref.root is None else self.vars.get(ref.root, 1))
        for region in op.regions:
            for inner in region.ops:
                level = max(level, self.block_level(inner))
        return level

    def call(self, op: Op, here: _Here) -> None:
        """A call that stays, of the rest of its callee where part of that can go before."""
        invariant: Invariant = None
        if here.floor < here.level:
            invariant = frozenset(
                k for k, v in enumerate(op.operands) if self.known[v].level < here.level
            )
        split = self.owner.split(op.attrs["callee"], invariant, here.firm == here.level)
        extras = () if split.once is None else self.once_call(op, split, split.once, here)
        operands = (*(self.get(v, here.level) for v in op.operands), *extras)
        results = tuple(map(_twin, op.results))
        self.place(op.results, results, here.level)
        attrs = MappingProxyType({**op.attrs, "callee": split.rest})
        self.lists[here.level].append(Op("call", operands, results, attrs, (), op.span))

    def once_call(self, op: Op, part: Split, once: str, here: _Here) -> tuple[Value, ...]:
        """Calls the part of a callee that can go before; gives what the rest takes of it."""
        generics = self.owner.original(op.attrs["callee"]).generics
        subst = Subst.of(
            {g.var: dim for g, dim in zip(generics, op.attrs["generics"], strict=True)}
        )
        level = max([self.known[op.operands[k]].level for k in part.used], default=self.base)
        level = max(level, here.floor)
        if not self.owner.traits.is_total(once):
            level = max(level, here.firm)
        operands = tuple(self.get(op.operands[k], level) for k in part.used)
        key = (level, once, operands, op.attrs["generics"])
        outs = self.once_calls.get(key)
        if outs is None:
            outs = [Value(subst.type(v.type), v.name, v.span) for v in part.extras]
            self.emit_once(op, once, operands, outs, level)
            if level <= 1:  # deeper lists end with their region
                self.once_calls[key] = outs
        return tuple(self.get(out, here.level) for out in outs)

    def emit_once(
        self, op: Op, once: str, operands: tuple[Value, ...], outs: list[Value], level: int
    ) -> None:
        """A call of `once` at a level, its results known as if the original had them."""
        attrs = {"callee": once, "generics": op.attrs["generics"], "receiver": None}
        to = self.lists[level]
        whole = outs[0]
        if len(outs) > 1:
            whole = Value(TupleType(tuple(v.type for v in outs)), "", op.span)
        to.append(Op("call", operands, (whole,), MappingProxyType(attrs), (), op.span))
        for index, out in enumerate(outs):
            self.known[out] = _Known(level, None, {})
            self.place([out], [out], level)
            if len(outs) > 1:
                item: Mapping[str, Any] = MappingProxyType({"index": index})
                to.append(Op("tuple_get", (whole,), (out,), item, (), op.span))

    def regions(self, op: Op, here: _Here) -> None:
        """An operation with regions that stays; what can leave them does."""
        level = here.level + 1
        loop = is_loop(op)
        floor = here.floor if loop else level
        firm = level if not loop or may_be_empty(op) else here.firm
        if op.kind == "for_subs":
            self.vars[op.attrs["var"]] = level
        operands = tuple(self.get(v, here.level) for v in op.operands)
        regions = tuple(self.region(r, _Here(level, floor, max(firm, floor))) for r in op.regions)
        results = tuple(map(_twin, op.results))
        self.place(op.results, results, here.level)
        self.lists[here.level].append(Op(op.kind, operands, results, op.attrs, regions, op.span))

    def region(self, region: Region, here: _Here) -> Region:
        params = tuple(map(_twin, region.params))
        for old in region.params:
            self.known[old] = _Known(here.level, None, {})
        self.place(region.params, params, here.level)
        self.lists.append([])
        for op in region.ops:
            self.op(op, here)
        results = tuple(self.get(v, here.level) for v in region.results)
        return self.close(params, results, here.level)

    def close(self, params: Sequence[Value], results: Sequence[Value], level: int) -> Region:
        """Ends a region: its copies are out of sight from here on."""
        ops = tuple(self.lists.pop())
        for known in self.placed.pop(level, ()):
            known.copies.pop(level, None)
        return Region(tuple(params), ops, tuple(results))


class _Copier:
    """Copies regions as they are, calls led to the functions made here."""

    def __init__(self, owner: Owner, values: Mapping[Value, Value]) -> None:
        self.owner = owner
        self.values = dict(values)

    def attrs(self, op: Op) -> Mapping[str, Any]:
        if op.kind != "call":
            return op.attrs
        return MappingProxyType({**op.attrs, "callee": self.owner.whole(op.attrs["callee"])})

    def region(self, region: Region) -> Region:
        params = tuple(map(self.define, region.params))
        ops = tuple(map(self.op, region.ops))
        return Region(params, ops, tuple(self.values[v] for v in region.results))

    def define(self, value: Value) -> Value:
        self.values[value] = _twin(value)
        return self.values[value]

    def op(self, op: Op) -> Op:
        operands = tuple(self.values[v] for v in op.operands)
        regions = tuple(map(self.region, op.regions))
        results = tuple(map(self.define, op.results))
        return Op(op.kind, operands, results, self.attrs(op), regions, op.span)


def _twin(value: Value) -> Value:
    return Value(value.type, value.name, value.span)


def _extra_params(extras: Sequence[tuple[Value, Value]], taken: set[str]) -> list[Param]:
    params: list[Param] = []
    for _, value in extras:
        base = value.name or "made"
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        params.append(Param(name, value))
    return params
