"""Lines, local names, and which values get a line of their own.

A value that is used once, in the region that made it, and is short stays an expression inside its
user; the rest are assigned to a variable named after the source's name. Expressions that wait for
their user are written out before anything with an effect, so program order is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from linnet.backends.emit.dtypes import dtype_of, rank_of
from linnet.backends.emit.uses import count_uses
from linnet.backends.expr import ATOM, NO_NAMES, Expr
from linnet.backends.names import Names
from linnet.diagnostics import InternalError
from linnet.ir import Op, Region, Value
from linnet.types import TensorType, TupleType

NEST_LIMIT = 60


class Values:
    """The text of one function being written, and the expressions of its values."""

    memory: frozenset[str] = NO_NAMES
    """What an array of unknown origin may share memory with, where that matters (`Expr.alias`)."""

    def __init__(self, body: Region, names: Names) -> None:
        uses = count_uses(body, self.reads)
        self.left = uses.left
        self.items, self.item_index = uses.items, uses.item_index
        self.tail, self.crossing, self.makers = uses.tail, uses.crossing, uses.makers
        self.names = names
        self.lines: list[str] = []
        self.indent = 1
        self.env: dict[int, Expr] = {}
        self.pending: dict[int, tuple[Value, Expr]] = {}
        self.hints: dict[int, str] = {}
        self.unpacked: set[int] = set()
        self.owner: dict[str, tuple[int, int]] = {}  # variable -> (value, region it was set in)
        self.holders: defaultdict[str, set[int]] = defaultdict(set)  # variable -> its readers
        self.locked: frozenset[str] = frozenset()
        self.region = 0
        self._regions = 0

    def reads(self, op: Op) -> Sequence[Value]:
        """The operands that the operation's code takes."""
        return op.operands

    def moves(self, expr: Expr) -> bool:
        """Whether the text soon means something else, so that a variable must keep its value."""
        return False

    # --- text -----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented suite under `header`; `pass` where nothing was written in it."""
        self.line(header)
        self.indent += 1
        before, region = len(self.lines), self.region
        self._regions += 1
        self.region = self._regions
        yield
        self.flush()
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1
        self.region = region

    # --- values ---------------------------------------------------------------------------------

    def get(self, value: Value) -> Expr:
        """The value's expression for one use."""
        self.left[value.id] -= 1
        self.pending.pop(value.id, None)
        found = self.env.get(value.id)
        if found is None:
            raise InternalError("backends.emit", f"{value!r} is used before it is made", value.span)
        return found

    def peek(self, value: Value) -> Expr:
        """The value's expression, not yet used."""
        return self.env[value.id]

    def define(self, value: Value, expr: Expr, *, effect: bool = False, hint: str = "") -> None:
        """Gives `value` its expression; one with an `effect` runs now."""
        uses, crossing = self.left[value.id], value.id in self.crossing
        if effect:
            self.flush(expr.names)
        if uses == 0:
            if effect:
                self.line(expr.text)
            return
        if _is_cheap(expr):
            if not (crossing and self.moves(expr)):
                self.hold(value, expr)
                return
        elif uses == 1 and value.id in self.tail and not self.moves(expr):
            self.hold(value, expr)
            return
        elif uses == 1 and not (crossing or effect or value.name) and len(expr.text) <= NEST_LIMIT:
            self.hold(value, expr)
            self.pending[value.id] = (value, expr)
            self.hints[value.id] = hint
            return
        self.assign(value, expr, hint)

    def hold(self, value: Value, expr: Expr) -> None:
        """Makes `expr` the value's expression from now on."""
        self.env[value.id] = expr
        for name in expr.names:
            self.holders[name].add(value.id)

    def assign(self, value: Value, expr: Expr, hint: str = "") -> None:
        """Writes `name = expr`."""
        name = self.variable(value, value.name or hint or "value", expr)
        if name != expr.text:
            self.line(f"{name} = {expr.text}")
        self.hold(value, expr.renamed(name))

    def flush(self, locked: frozenset[str] = frozenset()) -> None:
        """Writes out every waiting expression, in the order they were made. Variables in `locked`
        are about to be read and keep their values."""
        waiting = list(self.pending.values())
        before, self.locked = self.locked, self.locked | locked
        for value, expr in waiting:
            self.pending.pop(value.id, None)
            self.assign(value, expr, self.hints.get(value.id, ""))
        self.locked = before

    def settle(self, value: Value, hint: str = "") -> Expr:
        """One use of the value, through a variable or another text that is cheap to repeat."""
        expr = self.get(value)
        if _is_cheap(expr):
            return expr
        name = self.names.fresh(value.name or hint or "value")
        self.line(f"{name} = {expr.text}")
        return expr.renamed(name)

    # --- parameters and variables ---------------------------------------------------------------

    def bind(self, value: Value, wanted: str, host: bool) -> str:
        """Gives a parameter its name; a `host` one comes as a Python number."""
        name = self.names.fresh(wanted)
        array = Expr(name, rank=rank_of(value.type), names=frozenset((name,)), alias=self.memory)
        self.hold(value, host_expr(value, name) if host else array)
        self.owner[name] = (value.id, 0)
        return name

    def variable(self, value: Value | None, wanted: str, expr: Expr | None = None) -> str:
        """A variable to assign now: `wanted`, taken over from a value nobody reads any more."""
        held = self.owner.get(wanted)
        if held is not None and self._is_dead(wanted, held, expr):
            name = wanted
        else:
            name = self.names.fresh(wanted)
        if value is not None:
            self.owner[name] = (value.id, self.region)
        return name

    def _is_dead(self, name: str, held: tuple[int, int], expr: Expr | None) -> bool:
        value, region = held
        if region != self.region or self.left[value] > 0 or name in self.locked:
            return False
        if any(self.left[reader] > 0 for reader in self.holders[name]):
            return False
        waiting = (each for _, each in self.pending.values() if each is not expr)
        return not any(name in each.names for each in waiting)

    def place_for(self, value: Value, hint: str) -> str:
        """A variable that the line being written sets to `value`, an array or an aggregate."""
        name = self.variable(value, value.name or hint or "value")
        made = Expr(name, rank=rank_of(value.type), names=frozenset((name,)), alias=self.memory)
        self.hold(value, made)
        return name

    def is_unpacked(self, value: Value) -> bool:
        """Whether the value is a tuple that is only ever taken apart, each item once."""
        items = self.items[value.id]
        if not isinstance(value.type, TupleType) or not items or value.id in self.crossing:
            return False
        indices = [self.item_index[item.id] for item in items]
        return self.left[value.id] == len(items) and len(set(indices)) == len(indices)

    def unpack(self, value: Value, locked: frozenset[str] = frozenset()) -> str:
        """The pattern that takes the tuple apart, `a, _, b`, where it `is_unpacked`; variables in
        `locked` keep their values."""
        assert isinstance(value.type, TupleType)
        before, self.locked = self.locked, self.locked | locked
        places: list[str] = ["_"] * len(value.type.items)
        for item in self.items[value.id]:
            places[self.item_index[item.id]] = self.place_for(item, "item")
            self.unpacked.add(item.id)
        self.locked = before
        return f"{', '.join(places)}{',' * (len(places) == 1)}"


def _is_cheap(expr: Expr) -> bool:
    """A number, or `a` or `a.b.c`: cheap enough to write wherever it is used."""
    if expr.const is not None:
        return True
    return expr.prec == ATOM and all(part.isidentifier() for part in expr.text.split("."))


def host_expr(value: Value, name: str) -> Expr:
    """A host value whose content is known only when the code runs, in variable `name`."""
    bounds = None
    if isinstance(value.type, TensorType):
        dtype = dtype_of(value.type)
        bounds = dtype.integer_range if dtype.is_integer else None
    return Expr(name, host=True, bounds=bounds, names=frozenset((name,)))
