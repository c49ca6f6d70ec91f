"""drop: what nothing uses goes.

Needs specialised functions. Guarantees that every operation has an effect or a use, every function
is reached from an entry, and every parameter of a function that is no entry (and has no gradient
clause, whose parameters are fixed) is used. Names of what stays are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from linnet.ir import Function, Op, Region, Value
from linnet.ir.rewrite import drop_dead
from linnet.ir.walk import callees_first, use_counts, walk
from linnet.passes.effects import call_writes, summaries
from linnet.passes.module import Module


def drop(module: Module) -> Module:
    """The module without dead operations, functions and parameters."""
    reached = callees_first(module.functions, module.roots)
    effects = summaries({name: module.functions[name] for name in reached})
    dead = call_writes(effects)
    fixed = frozenset(module.entries.values()) | frozenset(module.prepared)
    functions: dict[str, Function] = {}
    kept: dict[str, tuple[int, ...]] = {}
    for name in reached:
        function = drop_dead(_shorter_calls(module.functions[name], kept), dead)
        if name not in fixed and function.grad is None:
            function, kept[name] = _used_params(function)
        functions[name] = function
    again = callees_first(functions, module.roots)
    return module.with_functions({name: functions[name] for name in again})


def _used_params(function: Function) -> tuple[Function, tuple[int, ...]]:
    uses = use_counts(function)
    places = tuple(k for k, p in enumerate(function.params) if uses.get(p.value))
    if len(places) == len(function.params):
        return function, places
    params = tuple(function.params[k] for k in places)
    body = function.body
    if body.params:
        body = replace(body, params=tuple(p.value for p in params))
    return replace(function, params=params, body=body), places


def _shorter_calls(function: Function, kept: Mapping[str, tuple[int, ...]]) -> Function:
    """Calls give only the operands that their callee still takes."""
    if not any(_is_shorter(op, kept) for op in walk(function.body)):
        return function
    return replace(function, body=_shorter_region(function.body, kept))


def _is_shorter(op: Op, kept: Mapping[str, tuple[int, ...]]) -> bool:
    if op.kind != "call":
        return False
    places = kept.get(op.attrs["callee"])
    return places is not None and len(places) != len(op.operands)


def _shorter_region(region: Region, kept: Mapping[str, tuple[int, ...]]) -> Region:
    ops: list[Op] = []
    for op in region.ops:
        if _is_shorter(op, kept):
            operands: tuple[Value, ...] = tuple(op.operands[k] for k in kept[op.attrs["callee"]])
            op = replace(op, operands=operands)
        elif op.regions:
            op = replace(op, regions=tuple(_shorter_region(r, kept) for r in op.regions))
        ops.append(op)
    return replace(region, ops=tuple(ops))
