"""trim: results that no caller looks at are no longer returned.

Needs specialised functions without dead operations. Guarantees that of a function that returns a
tuple it makes itself, and whose every call is only taken apart by `tuple_get`, only the items taken
stay; a single one is returned as it is. What made the others is left for `drop`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from linnet.ir import Function, Op, Region, Value
from linnet.ir.rewrite import Rewriter, drop_dead
from linnet.ir.walk import bodies, definitions, use_counts, walk
from linnet.passes.module import Module
from linnet.types import TupleType


def trim(module: Module) -> Module:
    """The module with shorter results; callers are looked at before what they call."""
    used: dict[str, set[int]] = {}
    whole = set(module.entries.values())
    kept: dict[str, tuple[int, ...]] = {}
    functions = dict(module.functions)
    for name in reversed(list(module.functions)):
        made = _made_tuple(functions[name])
        taken = used.get(name, set())
        if made is not None and name not in whole and 0 < len(taken) < len(made.operands):
            kept[name] = tuple(sorted(taken))
            functions[name] = drop_dead(_shorter(functions[name], made, kept[name]))
        _note(functions[name], used, whole)
    if not kept:
        return module
    return module.with_functions({n: _taking(f, kept) for n, f in functions.items()})


def _made_tuple(function: Function) -> Op | None:
    """The tuple that a function's own body makes and returns."""
    if function.grad is not None or len(function.body.results) != 1:
        return None
    made = definitions(function).get(function.body.results[0])
    return made if made is not None and made.kind == "tuple" else None


def _note(function: Function, used: dict[str, set[int]], whole: set[str]) -> None:
    """Which items of its callees' results a function takes."""
    for body in bodies(function):
        calls = {op.result: op.attrs["callee"] for op in walk(body)
                 if op.kind == "call" and op.results}  # fmt: skip
        uses = use_counts(body)
        for op in walk(body):
            if op.kind == "tuple_get" and op.operands[0] in calls:
                used.setdefault(calls[op.operands[0]], set()).add(op.attrs["index"])
                uses[op.operands[0]] -= 1
        whole.update(callee for value, callee in calls.items() if uses.get(value))


def _shorter(function: Function, made: Op, items: Sequence[int]) -> Function:
    values = tuple(made.operands[k] for k in items)
    body = function.body
    if len(values) == 1:
        return replace(function, body=Region(body.params, body.ops, values))
    pair = Value(TupleType(tuple(v.type for v in values)), "", made.span)
    new = Op("tuple", values, (pair,), span=made.span)
    return replace(function, body=Region(body.params, (*body.ops, new), (pair,)))


def _taking(function: Function, kept: Mapping[str, tuple[int, ...]]) -> Function:
    """Calls and look-ups as the shorter results ask."""
    calls = {
        op.result: kept[op.attrs["callee"]]
        for body in bodies(function)
        for op in walk(body)
        if op.kind == "call" and op.attrs["callee"] in kept
    }
    if not calls:
        return function

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if len(op.results) == 1 and op.result in calls:
            types = op.result.type
            items = calls[op.result]
            if not isinstance(types, TupleType):
                return None
            left = tuple(types.items[k] for k in items)
            result = Value(left[0] if len(left) == 1 else TupleType(left), "", op.span)
            rw.builder.append(replace(op, operands=rw.operands(op), results=(result,)))
            return [result]
        if op.kind == "tuple_get" and op.operands[0] in calls:
            items = calls[op.operands[0]]
            (whole,) = rw.operands(op)
            if len(items) == 1:
                return [whole]
            index = MappingProxyType({"index": items.index(op.attrs["index"])})
            return rw.copy(op, attrs=index)
        return None

    return Rewriter(transform, fresh=False).function(function)
