"""What is known of a value before a run, in terms of an entry's inputs and sizes.

A bound is *attained*: some element really has that value (unless the tensor is empty), so an index
whose bound lies outside its axis is certainly wrong. Bounds that are only safe to assume are of no
use here and are left out. `host` is the value itself as an expression over the inputs, for what
bounds cannot say: it is worked out in NumPy when a requirement is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from linnet.dims import Dim, Symbol
from linnet.ir.core import Attrs, Op
from linnet.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """An expression over inputs.

    `kind` is an operation's, "input", "if" (operands condition, then, else) or "pages" (see
    `linnet.passes.bounding.pages`). `names` are the inputs in it. Equal expressions are one object
    (`Interner`).
    """

    kind: str
    operands: tuple[Host, ...]
    attrs: Attrs
    result: Type
    names: frozenset[str]


class Interner:
    """Makes each host expression once."""

    def __init__(self) -> None:
        self._made: dict[Any, Host] = {}

    def make(
        self,
        kind: str,
        operands: tuple[Host, ...],
        attrs: Attrs,
        result: Type,
        names: frozenset[str] = frozenset(),
    ) -> Host:
        items = tuple(sorted(attrs.items()))
        key = (kind, tuple(map(id, operands)), items, result)
        if key not in self._made:
            names = names.union(*(operand.names for operand in operands))
            self._made[key] = Host(kind, operands, attrs, result, names)
        return self._made[key]


@dataclass(frozen=True, slots=True, eq=False)
class LoopAxis:
    """The iterations of one loop, as an axis that a value may vary along."""


Axis = int | LoopAxis
NO_AXES: frozenset[Axis] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A tensor or scalar. `lo` and `hi` are attained bounds, or None.

    It varies along `axes` alone, independently of the others' (loops count as axes). `dense` says
    that it takes every integer between its bounds. `parts` are tensors whose elements together are
    this one's: what a concatenation is made of.
    """

    lo: Dim | None = None
    hi: Dim | None = None
    axes: frozenset[Axis] = NO_AXES
    dense: bool = False
    host: Host | None = None
    parts: tuple[Known, ...] = ()

    @property
    def bounded(self) -> bool:
        return self.lo is not None and self.hi is not None

    @property
    def exact(self) -> Dim | None:
        """The one value it has, when that is known."""
        return self.lo if self.lo is not None and self.lo == self.hi else None


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """A tuple, or a struct's fields in order."""

    items: tuple[Abstract, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """An optional that certainly holds `inner`."""

    inner: Abstract


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """An optional that is certainly empty."""


Abstract = Known | Several | Held | Missing
UNKNOWN = Known()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A symbol that stands for an input: its value, or its smallest or largest element."""

    how: Literal["value", "min", "max"]
    name: str

    def __str__(self) -> str:
        return f"`{self.name}`" if self.how == "value" else f"{self.how}(`{self.name}`)"

    def of(self, given: Any) -> int:
        """What it stands for in an input: an integer, or a NumPy array that is not empty."""
        if isinstance(given, int):
            return given
        if given.size == 1:
            return int(given.item())
        return int(given.min() if self.how == "min" else given.max())


MAX_LEAVES = 1 << 30


@dataclass(slots=True)
class Leaves:
    """The symbols that stand for inputs."""

    by_symbol: dict[Symbol, Leaf] = field(default_factory=dict)
    symbols: dict[Leaf, Symbol] = field(default_factory=dict)

    def dim(self, leaf: Leaf) -> Dim:
        if leaf not in self.symbols:
            # Below every size's number, so that inputs come first where a bound is written out.
            symbol = Symbol(str(leaf), len(self.symbols) - MAX_LEAVES)
            self.symbols[leaf], self.by_symbol[symbol] = symbol, leaf
        return Dim.of(self.symbols[leaf])

    def names(self, dim: Dim | None) -> frozenset[str]:
        """The inputs that a bound mentions."""
        if dim is None:
            return frozenset()
        found = (self.by_symbol.get(symbol) for symbol in dim.symbols)
        return frozenset(leaf.name for leaf in found if leaf is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """Something that holds whenever the guarded place is reached: `value` is `expected`."""

    value: Host
    expected: bool


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """An index into an axis of `extent`, or without one an integer divisor, which is never 0.
    `positive` dims are at least 1 whenever it is used."""

    index: Known
    extent: Dim | None
    positive: tuple[Dim, ...]
    guards: tuple[Guard, ...]
    op: Op
