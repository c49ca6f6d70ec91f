"""Facts about masks, and how they follow views and calls; `linnet.passes.masks` finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from linnet.dims import Dim
from linnet.ir import Op, Value
from linnet.types import Subst, TensorType


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


def equality(slack: Linear) -> MaskFact | None:
    if slack.axes or slack.offset != Dim.of(0):
        return None
    signs = sorted((count, n) for n, (_, count) in enumerate(slack.terms.items()))
    if [count for count, _ in signs] != [-1, 1]:
        return None
    terms = list(slack.terms)
    return MaskFact((Same(terms[signs[0][1]], terms[signs[1][1]]),))


def inequality(slack: Linear) -> MaskFact | None:
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
