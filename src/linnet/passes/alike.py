"""Keys that are equal exactly when attributes, or whole functions, are alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linnet.dims import Dim, Symbol, fresh_symbol
from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.passes.memo import Memo
from linnet.types import Subst


class Unhashable(Exception):
    """An attribute that no key can be made of."""


def frozen(attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """A hashable stand-in for attributes; numbers of different types stay different."""
    return tuple((name, _frozen(attrs[name])) for name in sorted(attrs))


def _frozen(value: Any) -> Any:
    if isinstance(value, bool | int):
        return type(value).__name__, value
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, tuple | list):
        return tuple(map(_frozen, value))
    if isinstance(value, Mapping):
        return frozen(value)
    try:
        hash(value)
    except TypeError as error:
        raise Unhashable from error
    return value


# Stand-ins for a function's own generics, by position.
_POSITIONS: list[Symbol] = []


def _position(number: int) -> Symbol:
    while len(_POSITIONS) <= number:
        _POSITIONS.append(fresh_symbol(f"#{len(_POSITIONS)}"))
    return _POSITIONS[number]


def fingerprint(function: Function) -> object:
    """Equal for two functions with equal bodies, whatever their values and generics are called."""
    pairs = {
        generic.var: Dim.of(_position(number)) for number, generic in enumerate(function.generics)
    }
    reader = _Reader(Memo.of_subst(Subst.of(pairs)))
    params = tuple(map(reader.define, (p.value for p in function.params)))
    defaults = tuple(repr(p.default) for p in function.params)
    body = reader.region(function.body)
    grad: object = None
    if function.grad is not None:
        for value in function.grad.params:
            reader.define(value)
        grad = reader.region(function.grad.body)
    return function.kind, len(pairs), params, defaults, body, grad


class _Reader:
    """Numbers values and loop variables in the order they are defined."""

    def __init__(self, subst: Subst) -> None:
        self.subst = subst
        self.values: dict[Value, int] = {}
        self.vars: dict[SubVar, int] = {}

    def define(self, value: Value) -> object:
        self.values.setdefault(value, len(self.values))
        return self.subst.type(value.type)

    def region(self, region: Region) -> object:
        params = tuple(map(self.define, region.params))
        ops = tuple(map(self.op, region.ops))
        return params, ops, tuple(self.values[v] for v in region.results)

    def op(self, op: Op) -> object:
        operands = tuple(self.values[v] for v in op.operands)
        if op.kind == "for_subs":
            self.vars[op.attrs["var"]] = len(self.vars)
        attrs = tuple((name, self.attr(op.attrs[name])) for name in sorted(op.attrs))
        regions = tuple(map(self.region, op.regions))
        return op.kind, operands, attrs, regions, tuple(map(self.define, op.results))

    def attr(self, value: Any) -> object:
        if isinstance(value, Dim):
            return self.subst.dim(value)
        if isinstance(value, Ref):
            return ("ref", None if value.root is None else self.vars[value.root], value.steps)
        if isinstance(value, SubVar):
            return ("var", self.vars[value])
        if isinstance(value, tuple | list):
            return tuple(map(self.attr, value))
        return _frozen(value)
