"""What boolean masks are: facts kept from where a mask is made to where an op takes it.

A mask's fact is a conjunction that says exactly where it is true, over the positions along its
axes. Facts follow integer arithmetic on `iota` and on values, comparisons, `and`, views and calls;
a mask that comes from outside, or that anything else had a part in, has none.

    seen[q, k] = iota(K)[k] <= pos + iota(Q)[q]     AtMost(key=1, query=0, bound=pos, offset=0)
    own[i, j]  = seg[i] == seg[j]                   Same(seg along 0, seg along 1)

Integers are taken not to overflow: entries check that positions lie in their axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from linnet.dims import Dim
from linnet.ir import Function, Op, Region, Value
from linnet.ir.walk import callees_first
from linnet.passes.module import Module
from linnet.types import DType, Subst, TensorType


@dataclass(frozen=True, slots=True)
class Bound:
    """An integer value; its axis k runs along the mask's axis `axes[k]`, or is 1 long (None)."""

    value: Value
    axes: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class AtMost:
    """position along `key` <= position along `query` (None: 0) + `bound` (None: 0) + `offset`.

    Causal with a query and no bound, a prefix with a bound and no query, both for a prompt that
    starts at a position."""

    key: int
    query: int | None
    bound: Bound | None
    offset: Dim


@dataclass(frozen=True, slots=True)
class Ordered:
    """`left` <= `right` + `offset`: positions that are given as values."""

    left: Bound
    right: Bound
    offset: Dim


@dataclass(frozen=True, slots=True)
class Same:
    """`left` == `right`: one segment."""

    left: Bound
    right: Bound


Atom = AtMost | Ordered | Same


@dataclass(frozen=True, slots=True)
class MaskFact:
    """The mask is true exactly where every atom holds."""

    atoms: tuple[Atom, ...]

    @property
    def single(self) -> AtMost | None:
        """The only atom, when it bounds a key's position."""
        if len(self.atoms) == 1 and isinstance(self.atoms[0], AtMost):
            return self.atoms[0]
        return None


@dataclass(frozen=True, slots=True)
class Linear:
    """An integer tensor: the sum of positions along axes, of values, and of a Dim."""

    axes: Mapping[int, int]  # axis -> coefficient
    terms: Mapping[Bound, int]
    offset: Dim

    def plus(self, other: Linear, sign: int) -> Linear:
        return Linear(
            _added(self.axes, other.axes, sign),
            _added(self.terms, other.terms, sign),
            self.offset + other.offset if sign > 0 else self.offset - other.offset,
        )


def _added(a: Mapping, b: Mapping, sign: int) -> dict:  # type: ignore[type-arg]
    total = dict(a)
    for key, count in b.items():
        total[key] = total.get(key, 0) + sign * count
    return {key: count for key, count in total.items() if count}


# For each old axis the new one; None: the axis is gone or stretched, its positions all 0.
Moves = Sequence[int | None]


def _moved_bound(bound: Bound, moves: Moves) -> Bound | None:
    type_ = bound.value.type
    dims = type_.dims if isinstance(type_, TensorType) else ()
    axes = tuple(None if axis is None else moves[axis] for axis in bound.axes)
    for axis, dim in zip(axes, dims, strict=True):
        if axis is None and dim != Dim.of(1):
            return None
    return Bound(bound.value, axes)


def moved_linear(linear: Linear, moves: Moves) -> Linear | None:
    axes = {moves[a]: c for a, c in linear.axes.items()}
    kept = {axis: count for axis, count in axes.items() if axis is not None}
    terms: dict[Bound, int] = {}
    for bound, count in linear.terms.items():
        new = _moved_bound(bound, moves)
        if new is None:
            return None
        terms[new] = count
    return Linear(kept, terms, linear.offset)


def moved_fact(fact: MaskFact, moves: Moves) -> MaskFact | None:
    atoms = [_moved_atom(atom, moves) for atom in fact.atoms]
    found = tuple(atom for atom in atoms if atom is not None)
    return MaskFact(found) if len(found) == len(atoms) else None


def _moved_atom(atom: Atom, moves: Moves) -> Atom | None:
    if isinstance(atom, AtMost):
        key = moves[atom.key]
        bound = None if atom.bound is None else _moved_bound(atom.bound, moves)
        if key is None or (bound is None) != (atom.bound is None):
            return None
        query = None if atom.query is None else moves[atom.query]
        return AtMost(key, query, bound, atom.offset)
    left, right = _moved_bound(atom.left, moves), _moved_bound(atom.right, moves)
    if left is None or right is None:
        return None
    return replace(atom, left=left, right=right)


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
            return _equality(slack)
        if op.kind in ("lt", "gt"):
            slack = replace(slack, offset=slack.offset - Dim.of(1))
        return _inequality(slack)

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


def translated(
    fact: MaskFact, value_of: Callable[[Value], Value | None], subst: Subst
) -> MaskFact | None:
    """The fact in another function's values and sizes; None where a value has no counterpart."""

    def bound(old: Bound) -> Bound | None:
        value = value_of(old.value)
        return None if value is None else Bound(value, old.axes)

    atoms: list[Atom] = []
    for atom in fact.atoms:
        if isinstance(atom, AtMost):
            new = None if atom.bound is None else bound(atom.bound)
            if (new is None) != (atom.bound is None):
                return None
            atoms.append(replace(atom, bound=new, offset=subst.dim(atom.offset)))
            continue
        left, right = bound(atom.left), bound(atom.right)
        if left is None or right is None:
            return None
        if isinstance(atom, Ordered):
            atoms.append(Ordered(left, right, subst.dim(atom.offset)))
        else:
            atoms.append(Same(left, right))
    return MaskFact(tuple(atoms))


def _equality(slack: Linear) -> MaskFact | None:
    if slack.axes or slack.offset != Dim.of(0):
        return None
    signs = sorted((count, n) for n, (_, count) in enumerate(slack.terms.items()))
    if [count for count, _ in signs] != [-1, 1]:
        return None
    terms = list(slack.terms)
    return MaskFact((Same(terms[signs[0][1]], terms[signs[1][1]]),))


def _inequality(slack: Linear) -> MaskFact | None:
    """`slack >= 0` as an atom."""
    keys = [axis for axis, count in slack.axes.items() if count == -1]
    queries = [axis for axis, count in slack.axes.items() if count == 1]
    plus = [bound for bound, count in slack.terms.items() if count == 1]
    minus = [bound for bound, count in slack.terms.items() if count == -1]
    whole = len(keys) + len(queries) == len(slack.axes)
    if not whole or len(plus) + len(minus) != len(slack.terms):
        return None
    if len(keys) == 1 and len(queries) <= 1 and len(plus) <= 1 and not minus:
        query = queries[0] if queries else None
        return MaskFact((AtMost(keys[0], query, plus[0] if plus else None, slack.offset),))
    if not slack.axes and len(plus) == len(minus) == 1:
        return MaskFact((Ordered(minus[0], plus[0], slack.offset),))
    return None


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


def moves_of(op: Op) -> Moves | None:
    """Where the operand's axes go in a view; None for what is no such view."""
    if op.kind == "permute":
        order = list(op.attrs["order"])
        return [order.index(axis) for axis in range(len(order))]
    if op.kind not in ("broadcast", "reshape"):
        return None
    source, result = op.operands[0].type, op.result.type
    if not isinstance(source, TensorType) or not isinstance(result, TensorType):
        return None
    if op.kind == "reshape":
        return _reshaped(source.dims, result.dims)
    places = op.attrs["axes"]
    return [
        place if source.dims[k] == result.dims[place] else None for k, place in enumerate(places)
    ]


def _reshaped(source: Sequence[Dim], result: Sequence[Dim]) -> Moves | None:
    """Axes of extent 1 put in and left out; everything else in order."""
    one = Dim.of(1)
    old = [k for k, dim in enumerate(source) if dim != one]
    new = [k for k, dim in enumerate(result) if dim != one]
    if [source[k] for k in old] != [result[k] for k in new]:
        return None
    moves: list[int | None] = [None] * len(source)
    for a, b in zip(old, new, strict=True):
        moves[a] = b
    return moves


# --- whole modules -------------------------------------------------------------------------------


def mask_facts(module: Module) -> dict[str, dict[Value, MaskFact]]:
    """The facts of every function's values. A parameter has one when all its calls agree on it,
    in terms of sizes and of other arguments of the same call."""
    order = callees_first(module.functions)
    results: dict[str, MaskFact] = {}
    for name in order:
        function = module.functions[name]
        found = FunctionFacts(results, module.functions)
        found.region(function.body)
        outs = function.body.results
        if len(outs) == 1 and outs[0] in found.facts:
            results[name] = found.facts[outs[0]]
    given: dict[str, dict[int, MaskFact | None]] = {}
    facts: dict[str, dict[Value, MaskFact]] = {}
    for name in reversed(order):
        function = module.functions[name]
        found = FunctionFacts(results, module.functions)
        for number, fact in given.get(name, {}).items():
            if fact is not None:
                found.facts[function.params[number].value] = fact
        found.region(function.body)
        facts[name] = found.facts
        _note_calls(function.body, found.facts, module.functions, given)
    return facts


def _note_calls(
    region: Region,
    facts: Mapping[Value, MaskFact],
    functions: Mapping[str, Function],
    given: dict[str, dict[int, MaskFact | None]],
) -> None:
    for op in region.ops:
        for inner in op.regions:
            _note_calls(inner, facts, functions, given)
        if op.kind != "call":
            continue
        callee = functions[op.attrs["callee"]]
        seen = given.setdefault(callee.name, {})
        for number, value in enumerate(op.operands):
            fact = _argument_fact(op, callee, facts.get(value))
            seen[number] = fact if seen.get(number, fact) == fact else None


def _argument_fact(op: Op, callee: Function, fact: MaskFact | None) -> MaskFact | None:
    """A caller's fact in the callee's terms: other arguments and sizes that are its generics."""
    if fact is None:
        return None
    values = dict(zip(op.operands, (p.value for p in callee.params), strict=True))
    back = {dim: g.var for g, dim in zip(callee.generics, op.attrs["generics"], strict=True)}
    symbols = {
        symbol: Dim.of(back[Dim.of(symbol)])  # type: ignore[arg-type]
        for atom in fact.atoms
        if not isinstance(atom, Same)
        for symbol in atom.offset.symbols
        if Dim.of(symbol) in back
    }
    moved = translated(fact, values.get, Subst(symbols))
    if moved is None:
        return None
    own = {g.var for g in callee.generics}
    left = {s for a in moved.atoms if not isinstance(a, Same) for s in a.offset.symbols}
    return moved if left <= own else None
