"""Finding generic arguments from argument types.

Unification runs over all argument types together. What a lone generic meets is its value; sums and
products wait until all but one of their unknowns are known and are then solved when the answer is
unique. Nothing is decided here about types that differ: the caller compares them afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from linnet.dims import Dim, DimError, Facts, Symbol, solve
from linnet.ir import Generic, GenericVar
from linnet.types import (
    DType,
    DTypeVar,
    GenericArg,
    OptionalType,
    PackVar,
    Shape,
    StructType,
    Subst,
    TensorType,
    TupleType,
    Type,
    dtypes_of,
)


@dataclass(slots=True)
class Inference:
    """The generics of one call being found; `bound` has what is known so far."""

    generics: tuple[Generic, ...]
    facts: Facts
    bound: dict[GenericVar, GenericArg] = field(default_factory=dict)
    _waiting: list[tuple[Dim, Dim]] = field(default_factory=list)
    _shapes: list[tuple[Shape, Shape]] = field(default_factory=list)

    def unknown(self) -> list[Generic]:
        return [generic for generic in self.generics if generic.var not in self.bound]

    def subst(self) -> Subst:
        return Subst.of(self.bound)

    def unify(self, formal: Type, actual: Type) -> None:
        """Learns what it can from one parameter's type and its argument's."""
        match formal, actual:
            case TensorType(), TensorType():
                self._dtype(formal.dtype, actual.dtype)
                self._shape(formal.shape, actual.shape)
            case TupleType(), TupleType():
                for a, b in zip(formal.items, actual.items, strict=False):
                    self.unify(a, b)
            case OptionalType(), OptionalType():
                self.unify(formal.inner, actual.inner)
            case StructType(), StructType() if formal.path == actual.path:
                for x, y in zip(formal.args, actual.args, strict=False):
                    self._arg(x, y)
            case _:
                pass

    def _arg(self, formal: GenericArg, actual: GenericArg) -> None:
        if isinstance(formal, Dim) and isinstance(actual, Dim):
            self._dim(formal, actual)
        elif isinstance(formal, tuple) and isinstance(actual, tuple):
            self._shape(formal, actual)
        elif isinstance(formal, DTypeVar) and not isinstance(actual, Dim | tuple):
            self._dtype(formal, actual)

    def _is_open(self, var: GenericVar) -> bool:
        return var not in self.bound and any(generic.var == var for generic in self.generics)

    def _dtype(self, formal: object, actual: GenericArg) -> None:
        if isinstance(formal, DTypeVar) and self._is_open(formal):
            self.bound[formal] = actual

    def _shape(self, formal: Shape, actual: Shape) -> None:
        """Items left of the pack pair with the first, right of it with the last; it takes the
        rest. With several open packs the shape waits until others are known."""
        packs = [item for item in formal if isinstance(item, PackVar) and self._is_open(item)]
        if len(packs) > 1:
            self._shapes.append((formal, actual))
            return
        if self.bound and any(isinstance(item, PackVar) for item in formal):
            formal = self._known_packs(formal)
        if not packs:
            if len(formal) == len(actual):
                self._pair(formal, actual)
            return
        at = formal.index(packs[0])
        after = len(formal) - at - 1
        if len(actual) < at + after:
            return
        end = len(actual) - after
        self.bound[packs[0]] = actual[at:end]
        self._pair(formal[:at], actual[:at])
        self._pair(formal[at + 1 :], actual[end:])

    def _known_packs(self, formal: Shape) -> Shape:
        items: list[Dim | PackVar] = []
        for item in formal:
            known = self.bound.get(item) if isinstance(item, PackVar) else None
            items.extend(known if isinstance(known, tuple) else (item,))
        return tuple(items)

    def _pair(self, formal: Shape, actual: Shape) -> None:
        for a, b in zip(formal, actual, strict=True):
            if isinstance(a, Dim) and isinstance(b, Dim):
                self._dim(a, b)

    def _dim(self, formal: Dim, actual: Dim) -> None:
        symbol = _lone_symbol(formal)
        if symbol is not None:
            if self._is_open(symbol):
                self.bound[symbol] = actual
        elif any(map(self._is_open, formal.symbols)):
            self._waiting.append((formal, actual))

    def solve(self) -> None:
        """Works through what waits until nothing more can be learned."""
        while True:
            before = len(self.bound)
            shapes, self._shapes = self._shapes, []
            for formal, actual in shapes:
                self._shape(formal, actual)
            waiting, self._waiting = self._waiting, []
            for left, right in waiting:
                self._solve_one(left, right)
            if len(self.bound) == before:
                return

    def _solve_one(self, formal: Dim, actual: Dim) -> None:
        open_ = [symbol for symbol in formal.symbols if self._is_open(symbol)]
        if len(open_) > 1:
            self._waiting.append((formal, actual))
            return
        if not open_:
            return
        try:
            answer = solve(self.subst().dim(formal), open_[0], actual, self.facts)
        except DimError:
            answer = None
        if answer is not None:
            self.bound[open_[0]] = answer

    def add_defaults(self) -> None:
        for generic in self.generics:
            if generic.var not in self.bound and generic.default is not None:
                self.bound[generic.var] = self.subst().arg(generic.default)

    def misfit(self) -> Generic | None:
        """The first generic whose dtype breaks its kind."""
        for generic in self.generics:
            arg = self.bound.get(generic.var)
            if not isinstance(generic.var, DTypeVar) or not isinstance(arg, DType | DTypeVar):
                continue
            if not dtypes_of(arg) <= dtypes_of(generic.var):
                return generic
        return None


def _lone_symbol(dim: Dim) -> Symbol | None:
    symbols = dim.symbols
    if len(symbols) == 1:
        (symbol,) = symbols
        if dim == Dim.of(symbol):
            return symbol
    return None


def mentions(type_: Type, inference: Inference) -> bool:
    """Whether the type still has an unknown generic in it."""
    open_ = {generic.var for generic in inference.unknown()}
    return bool(open_) and _mentions(type_, open_)


def _mentions(type_: Type, open_: set[GenericVar]) -> bool:
    match type_:
        case TensorType(shape, dtype):
            return dtype in open_ or any(
                item in open_ if isinstance(item, PackVar) else bool(item.symbols & open_)
                for item in shape
            )
        case TupleType(items):
            return any(_mentions(item, open_) for item in items)
        case OptionalType(inner):
            return _mentions(inner, open_)
        case StructType(fields=fields):
            return any(_mentions(inner, open_) for _, inner in fields)
        case _:
            return False
