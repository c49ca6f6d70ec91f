"""carry: bounds of masks are handed on together with the masks.

Needs specialised functions. Where every call of a function gives it a mask of one known kind whose
bound (a position, segment ids) stays behind in the caller, the bound becomes a further argument, so
that what the mask is can be said in the callee's own terms. Guarantees the same values; what no
native takes in the end is left for `drop`. Ops, entries and functions with a gradient clause keep
their parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from linnet.ir import Function, Op, Param, Region, Value
from linnet.ir.walk import callees_first, walk
from linnet.passes.mask_facts import AtMost, Bound, MaskFact
from linnet.passes.masks import FunctionFacts, argument_fact, result_facts, sizes_back
from linnet.passes.module import Module
from linnet.types import DType, OptionalType, TensorType, Type


@dataclass(frozen=True, slots=True)
class _Site:
    """A call, and what its caller knows of the operands."""

    op: Op
    facts: Mapping[int, MaskFact]


def carry(module: Module) -> Module:
    """The module with bounds passed along, callers before callees."""
    if not any(map(_takes_mask, module.functions.values())):
        return module
    work = _Carrier(module)
    for name in reversed(callees_first(module.functions)):
        work.function(name)
    return work.finish()


def _takes_mask(function: Function) -> bool:
    return function.kind == "fn" and any(_is_mask(p.type) for p in function.params)


def _is_mask(type_: Type) -> bool:
    inner = type_.inner if isinstance(type_, OptionalType) else type_
    return isinstance(inner, TensorType) and inner.dtype is DType.BOOL


@dataclass(slots=True)
class _Carrier:
    module: Module
    results: Mapping[str, MaskFact] = field(init=False)
    functions: dict[str, Function] = field(default_factory=dict)
    sites: dict[str, list[_Site]] = field(default_factory=dict)
    more: dict[Op, tuple[Value, ...]] = field(default_factory=dict)  # operands to add to calls

    def __post_init__(self) -> None:
        self.results = result_facts(self.module)

    def function(self, name: str) -> None:
        """Decides one function's parameters, all its calls known, and notes the calls in it."""
        function = self.module.functions[name]
        known: dict[Value, MaskFact] = {}
        if name not in self.module.entries.values():
            function, known = self.with_bounds(function)
        self.functions[name] = function
        found = FunctionFacts(self.results, self.module.functions, dict(known))
        found.region(function.body)
        for op in walk(function.body):
            if op.kind == "call":
                facts = {k: found.facts[v] for k, v in enumerate(op.operands) if v in found.facts}
                self.sites.setdefault(op.attrs["callee"], []).append(_Site(op, facts))

    def with_bounds(self, function: Function) -> tuple[Function, dict[Value, MaskFact]]:
        """The function with parameters for the bounds its masks need, and the masks' facts."""
        known: dict[Value, MaskFact] = {}
        sites = self.sites.get(function.name, [])
        fixed = function.kind != "fn" or function.grad is not None
        for number, param in enumerate(function.params):
            if not sites or any(number not in site.facts for site in sites):
                continue
            left = [_left_behind(site, number) for site in sites]
            new = _bound_params(function, sites, left)
            if new is None or (new and fixed):
                continue
            fact = _agreed(function, number, sites, left, new)
            if fact is None:
                continue
            known[param.value] = fact
            for site, values in zip(sites, left, strict=True):
                self.more[site.op] = (*self.more.get(site.op, ()), *values)
            function = replace(function, params=(*function.params, *new))
        return function, known

    def finish(self) -> Module:
        if not self.more:
            return self.module
        done = {}
        for name in self.module.functions:
            function = self.functions[name]
            values = tuple(p.value for p in function.params)
            body = _calling(function.body, self.more)
            body = replace(body, params=values if body.params else ())
            done[name] = replace(function, body=body)
        return self.module.with_functions(done)


def _bounds(fact: MaskFact) -> list[Bound]:
    found: list[Bound] = []
    for atom in fact.atoms:
        if isinstance(atom, AtMost):
            found += [] if atom.bound is None else [atom.bound]
        else:
            found += [atom.left, atom.right]
    return found


def _left_behind(site: _Site, number: int) -> tuple[Value, ...]:
    """The values of a mask's fact that the call does not pass."""
    values = dict.fromkeys(bound.value for bound in _bounds(site.facts[number]))
    return tuple(value for value in values if value not in site.op.operands)


def _bound_params(
    function: Function, sites: Sequence[_Site], left: Sequence[tuple[Value, ...]]
) -> tuple[Param, ...] | None:
    """A parameter for each value left behind, where all calls leave values of the same types."""
    types = [
        tuple(sizes_back(site.op, function).type(v.type) for v in values)
        for site, values in zip(sites, left, strict=True)
    ]
    own = {generic.var for generic in function.generics}
    for type_ in types[0]:
        symbols = (
            {s for d in type_.dims for s in d.symbols} if isinstance(type_, TensorType) else ()
        )
        if not own.issuperset(symbols):
            return None
    if any(other != types[0] for other in types):
        return None
    taken = {p.name for p in function.params}
    params: list[Param] = []
    for value, type_ in zip(left[0], types[0], strict=True):
        base = value.name or "bound"
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        params.append(Param(name, Value(type_, name, value.span)))
    return tuple(params)


def _agreed(
    function: Function,
    number: int,
    sites: Sequence[_Site],
    left: Sequence[tuple[Value, ...]],
    new: tuple[Param, ...],
) -> MaskFact | None:
    """The one fact that all calls give for a parameter."""
    facts: list[MaskFact | None] = []
    for site, values in zip(sites, left, strict=True):
        places = dict(zip(site.op.operands, (p.value for p in function.params), strict=False))
        places.update(zip(values, (p.value for p in new), strict=True))
        facts.append(argument_fact(site.op, function, site.facts[number], places))
    return facts[0] if all(fact == facts[0] for fact in facts) else None


def _calling(region: Region, more: Mapping[Op, tuple[Value, ...]]) -> Region:
    ops: list[Op] = []
    for op in region.ops:
        if op in more:
            op = replace(op, operands=(*op.operands, *more[op]))
        elif op.regions:
            op = replace(op, regions=tuple(_calling(r, more) for r in op.regions))
        ops.append(op)
    return replace(region, ops=tuple(ops))
