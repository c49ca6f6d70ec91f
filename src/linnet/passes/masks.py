"""What boolean masks are: facts kept from where a mask is made to where an op takes it.

A mask's fact is a conjunction that says exactly where it is true, over the positions along its
axes. Facts follow integer arithmetic on `iota` and on values, comparisons, `and`, views and calls;
a mask that comes from outside, or that anything else had a part in, has none.

    seen[q, k] = iota(K)[k] <= pos + iota(Q)[q]     AtMost(key=1, query=0, bound=pos, offset=0)
    own[i, j]  = seg[i] == seg[j]                   Same(seg along 0, seg along 1)

Integers are taken not to overflow: entries check that positions lie in their axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from linnet.dims import Dim, Symbol
from linnet.ir import Function, Op, Region, Value
from linnet.ir.walk import callees_first, walk
from linnet.passes.mask_facts import (
    AtMost,
    Bound,
    Linear,
    MaskFact,
    Ordered,
    Same,
    equality,
    inequality,
    moved_fact,
    moved_linear,
    moves_of,
    translated,
)
from linnet.passes.module import Module
from linnet.types import DType, Subst, TensorType

__all__ = ["AtMost", "Bound", "MaskFact", "Ordered", "Same", "mask_facts"]


@dataclass(slots=True)
class FunctionFacts:
    """The facts of one function's values, parameters' given."""

    results: Mapping[str, MaskFact]  # of callees
    functions: Mapping[str, Function]
    facts: dict[Value, MaskFact] = field(default_factory=dict)
    linear: dict[Value, Linear] = field(default_factory=dict)

    def region(self, region: Region) -> None:
        for op in region.ops:
            if len(op.results) == 1:
                self.op(op)
            for inner in op.regions:
                self.region(inner)

    def op(self, op: Op) -> None:
        type_ = op.result.type
        if op.kind == "some":
            self.keep(op, self.facts.get(op.operands[0]))
        elif not isinstance(type_, TensorType) or not isinstance(type_.dtype, DType):
            return
        elif type_.dtype.is_integer:
            linear = _INTEGER.get(op.kind, _opaque)(self, op)
            if linear is not None:
                self.linear[op.result] = linear
        elif type_.dtype is DType.BOOL:
            self.keep(op, self.boolean(op))

    def keep(self, op: Op, fact: MaskFact | None) -> None:
        if fact is not None:
            self.facts[op.result] = fact

    def of(self, value: Value) -> Linear:
        """What is known of an integer value: at least that it is itself."""
        known = self.linear.get(value)
        if known is not None:
            return known
        rank = len(value.type.shape) if isinstance(value.type, TensorType) else 0
        return Linear({}, {Bound(value, tuple(range(rank))): 1}, Dim.of(0))

    def boolean(self, op: Op) -> MaskFact | None:
        match op.kind:
            case "le" | "lt" | "ge" | "gt" | "eq":
                return self.comparison(op)
            case "and":
                both = [self.facts.get(v) for v in op.operands]
                if both[0] is None or both[1] is None:
                    return None
                return MaskFact((*both[0].atoms, *both[1].atoms))
            case "call":
                return self.called(op)
            case _:
                moves = moves_of(op)
                fact = self.facts.get(op.operands[0]) if op.operands else None
                return None if moves is None or fact is None else moved_fact(fact, moves)

    def comparison(self, op: Op) -> MaskFact | None:
        left, right = op.operands
        type_ = left.type
        if not isinstance(type_, TensorType) or not isinstance(type_.dtype, DType):
            return None
        if not type_.dtype.is_integer:
            return None
        if op.kind in ("ge", "gt"):
            left, right = right, left
        slack = self.of(right).plus(self.of(left), -1)
        if op.kind == "eq":
            return equality(slack)
        if op.kind in ("lt", "gt"):
            slack = replace(slack, offset=slack.offset - Dim.of(1))
        return inequality(slack)

    def called(self, op: Op) -> MaskFact | None:
        """The callee's fact on its result, its own terms in the caller's."""
        name = op.attrs["callee"]
        fact = self.results.get(name)
        if fact is None:
            return None
        callee = self.functions[name]
        values = dict(zip((p.value for p in callee.params), op.operands, strict=True))
        subst = _generics_of(callee, op)
        return translated(fact, values.get, subst)


def _generics_of(callee: Function, op: Op) -> Subst:
    return Subst.of(
        {g.var: dim for g, dim in zip(callee.generics, op.attrs["generics"], strict=True)}
    )


# --- integers ------------------------------------------------------------------------------------


def _opaque(facts: FunctionFacts, op: Op) -> Linear | None:
    return None


def _iota(facts: FunctionFacts, op: Op) -> Linear:
    return Linear({0: 1}, {}, Dim.of(0))


def _number(facts: FunctionFacts, op: Op) -> Linear:
    number = op.attrs["value"] if op.kind == "const" else op.attrs["dim"]
    return Linear({}, {}, number if isinstance(number, Dim) else Dim.of(int(number)))


def _same_integer(facts: FunctionFacts, op: Op) -> Linear | None:
    type_ = op.operands[0].type
    if not isinstance(type_, TensorType) or not isinstance(type_.dtype, DType):
        return None
    return facts.of(op.operands[0]) if type_.dtype.is_integer else None


def _sum(facts: FunctionFacts, op: Op) -> Linear:
    left, right = map(facts.of, op.operands)
    return left.plus(right, 1 if op.kind == "add" else -1)


def _view(facts: FunctionFacts, op: Op) -> Linear | None:
    moves = moves_of(op)
    return None if moves is None else moved_linear(facts.of(op.operands[0]), moves)


_INTEGER: dict[str, Callable[[FunctionFacts, Op], Linear | None]] = {
    "iota": _iota,
    "const": _number,
    "dim": _number,
    "cast": _same_integer,
    "add": _sum,
    "sub": _sum,
    "broadcast": _view,
    "reshape": _view,
    "permute": _view,
}


# --- whole modules -------------------------------------------------------------------------------


def result_facts(module: Module) -> dict[str, MaskFact]:
    """What each function that returns a mask knows of it, in terms of its own parameters."""
    results: dict[str, MaskFact] = {}
    for name in callees_first(module.functions):
        function = module.functions[name]
        found = FunctionFacts(results, module.functions)
        found.region(function.body)
        outs = function.body.results
        if len(outs) == 1 and outs[0] in found.facts:
            results[name] = found.facts[outs[0]]
    return results


def mask_facts(module: Module) -> dict[str, dict[Value, MaskFact]]:
    """The facts of every function's values. A parameter has one when all its calls agree on it,
    in terms of sizes and of other arguments of the same call (`carry` sees to those)."""
    results = result_facts(module)
    entries = frozenset(module.entries.values())
    given: dict[str, dict[int, MaskFact | None]] = {}
    facts: dict[str, dict[Value, MaskFact]] = {}
    for name in reversed(callees_first(module.functions)):
        function = module.functions[name]
        found = FunctionFacts(results, module.functions)
        for number, fact in given.get(name, {}).items():
            if fact is not None and name not in entries:
                found.facts[function.params[number].value] = fact
        found.region(function.body)
        facts[name] = found.facts
        for op in walk(function.body):
            if op.kind == "call":
                _note_call(op, found.facts, module.functions, given)
    return facts


def _note_call(
    op: Op,
    facts: Mapping[Value, MaskFact],
    functions: Mapping[str, Function],
    given: dict[str, dict[int, MaskFact | None]],
) -> None:
    callee = functions[op.attrs["callee"]]
    seen = given.setdefault(callee.name, {})
    places = dict(zip(op.operands, (p.value for p in callee.params), strict=True))
    for number, value in enumerate(op.operands):
        fact = argument_fact(op, callee, facts.get(value), places)
        seen[number] = fact if seen.get(number, fact) == fact else None


def argument_fact(
    op: Op, callee: Function, fact: MaskFact | None, places: Mapping[Value, Value]
) -> MaskFact | None:
    """A caller's fact in the callee's terms: `places` gives the parameter for a value of the
    caller's, sizes are the callee's generics."""
    if fact is None:
        return None
    sizes = {s for atom in fact.atoms if not isinstance(atom, Same) for s in atom.offset.symbols}
    back = sizes_back(op, callee)
    if not sizes <= back.dims.keys():
        return None
    return translated(fact, places.get, back)


def sizes_back(op: Op, callee: Function) -> Subst:
    """The caller's sizes that a call passes as they are, in the callee's generics."""
    pairs = {}
    for generic, dim in zip(callee.generics, op.attrs["generics"], strict=True):
        symbols = list(dim.symbols)
        if len(symbols) == 1 and dim == Dim.of(symbols[0]) and isinstance(generic.var, Symbol):
            pairs[symbols[0]] = Dim.of(generic.var)
    return Subst(pairs)
