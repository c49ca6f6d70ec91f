"""share: what is computed twice alike is computed once.

Needs specialised functions. Guarantees that within a function no two pure operations with equal
operands and attributes stay where one sees the other, nor two reads of a state between which
nothing is written, and that specialised functions of one source function that are alike are one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from linnet.ir import Function, Op, Value
from linnet.ir.core import Region
from linnet.ir.rewrite import Rewriter
from linnet.passes.alike import Unhashable, fingerprint, frozen
from linnet.passes.effects import call_has_effects, summaries
from linnet.passes.module import Module

_NEVER = frozenset({"state_write", "some", "none"})


def share(module: Module) -> Module:
    """Common operations shared in each function, equal functions merged."""
    effects = call_has_effects(summaries(module.functions))
    instead: dict[str, str] = {}
    seen: dict[object, str] = {}
    functions: dict[str, Function] = {}
    fixed = frozenset(module.entries.values())
    for name, function in module.functions.items():
        function = _Sharer(effects, instead).run(function)
        key = None if name in fixed else _function_key(module, name, function)
        if key is not None and key in seen:
            instead[name] = seen[key]
            continue
        if key is not None:
            seen[key] = name
        functions[name] = function
    return module.with_functions(functions)


def _function_key(module: Module, name: str, function: Function) -> object | None:
    # Prepared functions are alike whoever asked for them.
    origin = "" if name in module.prepared else module.origins.get(name, name)
    try:
        return origin, function.block, fingerprint(function)
    except Unhashable:
        return None


class _Sharer:
    """One function's rewriting: available operations, innermost region last."""

    def __init__(self, has_effects: Callable[[Op], bool], instead: Mapping[str, str]) -> None:
        self.has_effects = has_effects
        self.instead = instead
        self.scopes: list[dict[object, tuple[Value, ...]]] = []
        self.epoch = 0  # goes up wherever some state may have been written
        self.rw = Rewriter(self.transform, fresh=False)

    def run(self, function: Function) -> Function:
        self.scopes = [{}]
        shared = self.rw.function(replace(function, grad=None))
        if function.grad is None:
            return shared
        # Nothing of the body is at hand in the gradient.
        self.scopes = [{}]
        return replace(shared, grad=self.rw.grad(function.grad))

    def transform(self, rw: Rewriter, op: Op) -> Sequence[Value] | None:
        attrs = op.attrs
        if op.kind == "call" and attrs["callee"] in self.instead:
            attrs = MappingProxyType({**attrs, "callee": self.instead[attrs["callee"]]})
        if op.regions:
            self.epoch += 1
            regions = tuple(map(self._region, op.regions))
            return rw.copy(op, attrs=attrs, regions=regions)
        if op.kind == "state_write" or (op.kind == "call" and self.has_effects(op)):
            self.epoch += 1
        key = self._key(op, attrs)
        if key is None:
            return None if attrs is op.attrs else rw.copy(op, attrs=attrs)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        results = rw.copy(op, attrs=attrs)
        self.scopes[-1][key] = results
        return results

    def _region(self, region: Region) -> Region:
        self.scopes.append({})
        try:
            return self.rw.region(region)
        finally:
            self.scopes.pop()
            self.epoch += 1

    def _key(self, op: Op, attrs: Mapping[str, Any]) -> object | None:
        if op.kind in _NEVER or (op.kind == "call" and self.has_effects(op)):
            return None
        try:
            types = tuple(value.type for value in op.results)
            epoch = self.epoch if op.kind == "state_read" else 0
            return op.kind, epoch, self.rw.operands(op), frozen(attrs), types
        except Unhashable:
            return None
