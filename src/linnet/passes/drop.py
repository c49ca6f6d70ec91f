"""drop: what nothing uses goes.

Needs specialised functions. Guarantees that every operation has an effect or a use, every function
is reached from an entry, and every parameter and generic of a function that is no entry (and has no
gradient clause, whose parameters are fixed) is used. Names of what stays are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from linnet.dims import Dim, Relation, Symbol
from linnet.ir import Function, Op, Region, Value
from linnet.ir.rewrite import drop_dead
from linnet.ir.walk import callees_first, use_counts, walk
from linnet.passes.effects import call_writes, summaries
from linnet.passes.module import Module
from linnet.types import OptionalType, StructType, TensorType, TupleType


@dataclass(frozen=True, slots=True)
class _Kept:
    """The parameters and generics that a function still has, by number."""

    params: tuple[int, ...]
    generics: tuple[int, ...]

    def fits(self, op: Op) -> bool:
        """Whether a call gives just these."""
        return len(self.params) == len(op.operands) and len(self.generics) == len(
            op.attrs["generics"]
        )

    def call(self, op: Op) -> Op:
        generics = op.attrs["generics"]
        attrs = {**op.attrs, "generics": tuple(generics[k] for k in self.generics)}
        operands: tuple[Value, ...] = tuple(op.operands[k] for k in self.params)
        return replace(op, operands=operands, attrs=MappingProxyType(attrs))


def drop(module: Module) -> Module:
    """The module without dead operations, functions, parameters and generics."""
    reached = callees_first(module.functions, module.roots)
    effects = summaries({name: module.functions[name] for name in reached})
    dead = call_writes(effects)
    fixed = frozenset(module.entries.values())
    functions: dict[str, Function] = {}
    kept: dict[str, _Kept] = {}
    for name in reached:
        function = drop_dead(_shorter_calls(module.functions[name], kept), dead)
        if name not in fixed and function.grad is None:
            function, kept[name] = _used(function)
        functions[name] = function
    again = callees_first(functions, module.roots)
    return module.with_functions({name: functions[name] for name in again})


def _used(function: Function) -> tuple[Function, _Kept]:
    """The function without unused parameters, then without generics that nothing mentions."""
    uses = use_counts(function)
    places = tuple(k for k, p in enumerate(function.params) if uses.get(p.value))
    if len(places) < len(function.params):
        params = tuple(function.params[k] for k in places)
        body = function.body
        if body.params:
            body = replace(body, params=tuple(p.value for p in params))
        function = replace(function, params=params, body=body)
    mentioned = sizes_in(function) if function.generics else frozenset()
    sizes = tuple(k for k, g in enumerate(function.generics) if g.var in mentioned)
    if len(sizes) < len(function.generics):
        gone = {g.var for g in function.generics} - mentioned
        where = tuple(c for c in function.where if gone.isdisjoint(_symbols_of(c)))
        generics = tuple(function.generics[k] for k in sizes)
        function = replace(function, generics=generics, where=where)
    return function, _Kept(places, sizes)


def sizes_in(function: Function) -> frozenset[Symbol]:
    """The symbols that a function's types and attributes mention."""
    found: set[Symbol] = set()
    seen: set[object] = set()

    def look(thing: object) -> None:
        match thing:
            case Dim():
                found.update(thing.symbols)
            case TensorType():
                if thing not in seen:
                    seen.add(thing)
                    look(thing.shape)
            case tuple() | list():
                for item in thing:
                    look(item)
            case TupleType(items):
                look(items)
            case OptionalType(inner):
                look(inner)
            case StructType(fields=fields):
                look(tuple(type_ for _, type_ in fields))
            case _:
                pass

    look(tuple(p.type for p in function.params))
    for op in walk(function.body):
        look(tuple(v.type for v in op.results))
        look(tuple(op.attrs.values()))
        look(tuple(v.type for region in op.regions for v in region.params))
    return frozenset(found)


def _symbols_of(clause: Relation) -> frozenset[Symbol]:
    return clause.left.symbols | clause.right.symbols


def _shorter_calls(function: Function, kept: Mapping[str, _Kept]) -> Function:
    """Calls give only what their callee still takes."""
    if not any(_is_longer(op, kept) for op in walk(function.body)):
        return function
    return replace(function, body=_shorter_region(function.body, kept))


def _is_longer(op: Op, kept: Mapping[str, _Kept]) -> bool:
    if op.kind != "call":
        return False
    places = kept.get(op.attrs["callee"])
    return places is not None and not places.fits(op)


def _shorter_region(region: Region, kept: Mapping[str, _Kept]) -> Region:
    ops: list[Op] = []
    for op in region.ops:
        if _is_longer(op, kept):
            op = kept[op.attrs["callee"]].call(op)
        elif op.regions:
            op = replace(op, regions=tuple(_shorter_region(r, kept) for r in op.regions))
        ops.append(op)
    return replace(region, ops=tuple(ops))
