"""unbind: methods that reach nothing of their block become plain functions.

Needs specialised functions. Guarantees that a call with a receiver is of a function that uses its
block. Entries stay methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from linnet.ir import Function, Op, Value
from linnet.ir.rewrite import Rewriter
from linnet.ir.walk import walk
from linnet.passes.effects import summaries
from linnet.passes.module import Module


def unbind(module: Module) -> Module:
    effects = summaries(module.functions)
    entries = frozenset(module.entries.values())
    free = frozenset(
        name
        for name, function in module.functions.items()
        if function.block is not None and not effects[name].block and name not in entries
    )
    if not free:
        return module
    functions = {n: _unbound(f, free) for n, f in module.functions.items()}
    return module.with_functions(
        {n: replace(f, block=None) if n in free else f for n, f in functions.items()}
    )


def _unbound(function: Function, free: frozenset[str]) -> Function:
    def applies(op: Op) -> bool:
        return op.kind == "call" and op.attrs["callee"] in free and op.attrs["receiver"] is not None

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if not applies(op):
            return None
        attrs: Mapping[str, object] = {**rw.attrs(op), "receiver": None}
        return rw.copy(op, attrs=MappingProxyType(attrs))

    if not any(map(applies, walk(function.body))):
        return function
    return Rewriter(transform, fresh=False).function(function)
