"""Writing one function: lines, local names, and which values get a line of their own.

A value that is used once, in the region that made it, and is short stays an expression inside its
user; the rest are assigned to a variable named after the source's name. Expressions that wait for
their user are written out before anything with an effect, so program order is kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linnet.backends.expr import ADD, ATOM, MUL, Expr, joined
from linnet.backends.names import Names, attribute
from linnet.diagnostics import InternalError
from linnet.dims import Dim, Symbol
from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.torch.emit.dtypes import carried, dtype_of, tensor
from linnet.types import DType, TensorType, TupleType, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linnet.torch.emit.module import ModuleWriter

NEST_LIMIT = 60
ANY_MEMORY = frozenset("?")
SIZE_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Size:
    """A dimension as Python source."""

    text: str
    prec: int
    names: frozenset[str]
    constant: int | None


class Writer:
    """The state of one function being written."""

    def __init__(self, module: ModuleWriter, name: str, function: Function, body: Region) -> None:
        self.module, self.function, self.key = module, function, name
        self.names = Names(module.top_names)
        self.lines: list[str] = []
        self.indent = 1
        self.env: dict[int, Expr] = {}
        self.pending: dict[int, tuple[Value, Expr]] = {}
        self.left: Counter[int] = Counter()  # uses still to come
        self.items: defaultdict[int, list[Value]] = defaultdict(list)  # of tuples, taken apart
        self.item_index: dict[int, int] = {}
        self.unpacked: set[int] = set()
        self.tail: set[int] = set()  # what a region ends with and gives
        self.crossing: set[int] = set()  # used in a region inside the one that made it
        self.owner: dict[str, tuple[int, int]] = {}  # variable -> (value, region it was set in)
        self.holders: defaultdict[str, set[int]] = defaultdict(set)  # variable -> its readers
        self.region = 0
        self.size_names: dict[Symbol, str] = {}
        self.used_sizes: set[Symbol] = set()
        self.subs: dict[SubVar, str] = {}
        self.in_sub_loop = 0
        self.locked: frozenset[str] = frozenset()
        self.hints: dict[int, str] = {}
        self._count(body, {}, [0])

    # --- uses -----------------------------------------------------------------------------------

    def _count(self, region: Region, home: dict[int, int], serial: list[int]) -> None:
        number = serial[0]
        serial[0] += 1
        for value in region.params:
            home[value.id] = number
        for op in region.ops:
            if op.kind == "tuple_get":
                self.items[op.operands[0].id].append(op.results[0])
                self.item_index[op.results[0].id] = op.attrs["index"]
            if op.kind != "state_write" or not op.attrs.get("done"):
                self._uses(op.operands, home, number)
            for inner in op.regions:
                self._count(inner, home, serial)
            for value in op.results:
                home[value.id] = number
        self._uses(region.results, home, number)
        if region.ops and len(region.results) == 1 and region.ops[-1].results == region.results:
            self.tail.add(region.results[0].id)

    def _uses(self, values: Iterable[Value], home: Mapping[int, int], number: int) -> None:
        for value in values:
            self.left[value.id] += 1
            if home.get(value.id, number) != number:
                self.crossing.add(value.id)

    # --- text -----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented suite under `header`; `pass` where nothing was written in it."""
        self.line(header)
        self.indent += 1
        before, region = len(self.lines), self.region
        self.region = self.module.next_region()
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
            raise InternalError("torch.emit", f"{value!r} is used before it is made", value.span)
        return found

    def peek(self, value: Value) -> Expr:
        return self.env[value.id]

    def define(
        self, value: Value, expr: Expr, *, effect: bool = False, hint: str = "", keep: bool = False
    ) -> None:
        """Gives `value` its expression: `keep` names it in any case, an `effect` runs in place."""
        uses = self.left[value.id]
        if uses == 0 and not keep:
            if effect:
                self.flush(expr.names)
                self.line(expr.text)
            return
        if expr.const is not None or (expr.prec == ATOM and _is_path(expr.text) and not keep):
            self.hold(value, expr)
            return
        crossing = value.id in self.crossing
        if uses == 1 and value.id in self.tail:
            if effect:
                self.flush(expr.names)
            self.hold(value, expr)
            return
        if uses == 1 and not crossing and not effect and not keep and self._nests(value, expr):
            self.hold(value, expr)
            self.pending[value.id] = (value, expr)
            self.hints[value.id] = hint
            return
        if effect:
            self.flush(expr.names)
        self.assign(value, expr, hint)

    def hold(self, value: Value, expr: Expr) -> None:
        """Makes `expr` the value's expression from now on."""
        self.env[value.id] = expr
        for name in expr.names:
            self.holders[name].add(value.id)

    def _nests(self, value: Value, expr: Expr) -> bool:
        return not value.name and len(expr.text) <= NEST_LIMIT

    def assign(self, value: Value, expr: Expr, hint: str = "") -> None:
        """Writes `name = expr`."""
        name = self.variable(value, value.name or hint or "value", expr)
        if name != expr.text:
            self.line(f"{name} = {expr.text}")
        self.hold(value, expr.renamed(name))

    def unpack(self, value: Value, text: str, names: frozenset[str], effect: bool) -> bool:
        """`a, b = text`, where the tuple is only ever taken apart; False where it is not."""
        items = self.items[value.id]
        type_ = value.type
        if not isinstance(type_, TupleType) or not items or value.id in self.crossing:
            return False
        if self.left[value.id] != len(items) or len(items) > len(type_.items):
            return False
        self.flush(names)
        before, self.locked = self.locked, self.locked | names
        places: list[str] = ["_"] * len(type_.items)
        for item in items:
            index = self.item_index[item.id]
            if places[index] != "_":
                self.locked = before
                return False
            places[index] = self.variable(item, item.name or "item")
        self.locked = before
        ending = "," if len(places) == 1 else ""
        self.line(f"{', '.join(places)}{ending} = {text}")
        for item in items:
            place = places[self.item_index[item.id]]
            rank = len(item.type.shape) if isinstance(item.type, TensorType) else 0
            self.hold(item, Expr(place, rank=rank, names=frozenset((place,)), alias=ANY_MEMORY))
            self.unpacked.add(item.id)
        return True

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
        if expr.const is not None or (expr.prec == ATOM and _is_path(expr.text)):
            return expr
        name = self.names.fresh(value.name or hint or "value")
        self.line(f"{name} = {expr.text}")
        return expr.renamed(name)

    # --- forms ----------------------------------------------------------------------------------

    def tensor(self, value: Value) -> Expr:
        """One use of the value as a tensor of its whole shape (perhaps a view)."""
        return self.whole(self.get(value), tensor(value.type))

    def whole(self, expr: Expr, type_: TensorType) -> Expr:
        dims = type_.dims
        if expr.host:
            return self.filled(expr, type_)
        units = {p for p in expr.unit if dims[len(dims) - p].constant != 1}
        if expr.rank == len(dims) and not units:
            return replace(expr, unit=frozenset())
        sizes = [self.size(d) for d in dims]
        text = f"{expr.at(ATOM)}.expand({', '.join(s.text for s in sizes)})"
        names = expr.names.union(*(s.names for s in sizes))
        return replace(expr, text=text, prec=ATOM, rank=len(dims), unit=frozenset(), names=names)

    def filled(self, expr: Expr, type_: TensorType) -> Expr:
        """A tensor of equal elements."""
        dims = [self.size(d) for d in type_.dims]
        dtype = dtype_of(type_)
        value = self.carry(expr, dtype)
        names = value.names.union(*(s.names for s in dims))
        where = f"dtype={carried(dtype)}, device=device"
        if dims and value.const in (0, 1) and not isinstance(value.const, bool):
            kind = "ones" if value.const else "zeros"
            text = f"torch.{kind}({shape_text(dims)}, {where})"
        else:
            text = f"torch.full({shape_text(dims)}, {value.text}, {where})"
        return Expr(text, rank=len(dims), names=names)

    def carry(self, expr: Expr, dtype: DType) -> Expr:
        """A host number as the carried dtype holds it (`u64` beyond `i64` has its bits kept)."""
        if dtype is not DType.U64 or not expr.host:
            return expr
        if expr.const is not None and int(expr.const) < 2**63:
            return expr
        if expr.const is not None:
            return replace(expr, text=f"({int(expr.const) - 2**64})", const=None, prec=ATOM)
        text = f"({expr.at(ADD)} + {2**63}) % {2**64} - {2**63}"
        return replace(expr, text=text, prec=ADD)

    def component(self, value: Value) -> Expr:
        """One use of the value inside a tuple, struct or optional, where scalars are tensors."""
        if isinstance(value.type, TensorType):
            return self.tensor(value)
        return self.get(value)

    # --- sizes and blocks -----------------------------------------------------------------------

    def size(self, dim: Dim) -> Size:
        constant = dim.constant
        if constant is not None:
            return Size(str(constant), ATOM, frozenset(), constant)
        for symbol in dim.symbols:
            if symbol not in self.size_names:
                what = f"the size {symbol} in {dim} is not known here"
                raise InternalError("torch.emit", what, self.function.span)
        self.used_sizes.update(dim.symbols)
        text = dim.render(lambda s: self.size_names[s], floordiv="//")
        names = frozenset(self.size_names[s] for s in dim.symbols)
        return Size(text, ATOM if text.isidentifier() else ADD, names, None)

    def ref(self, ref: Ref) -> str:
        text = "block" if ref.root is None else self.subs[ref.root]
        for step in ref.steps:
            text += f"[{step}]" if isinstance(step, int) else f".{attribute(step)}"
        return text

    def ref_names(self, ref: Ref) -> frozenset[str]:
        return frozenset() if ref.root is None else frozenset((self.subs[ref.root],))

    def call_text(self, function: str, arguments: Sequence[str]) -> str:
        return f"{function}({', '.join(arguments)})"


def shape_text(dims: Sequence[Size]) -> str:
    """A Python tuple of sizes."""
    inner = ", ".join(d.text for d in dims)
    return f"({inner},)" if len(dims) == 1 else f"({inner})"


def dim_bounds(dim: Dim) -> tuple[int, int]:
    """What a size lies between, each size that an input shows being at most 2**31 - 1."""
    low = high = 0
    for monomial, coefficient in dim.terms.items():
        most = abs(coefficient) * SIZE_LIMIT ** len(monomial)
        if monomial and any(not isinstance(atom, Symbol) for atom in monomial):
            low, high = low - most, high + most
        elif not monomial:
            low, high = low + coefficient, high + coefficient
        elif coefficient > 0:
            high += most
        else:
            low -= most
    return low, high


def _is_path(text: str) -> bool:
    """`a`, `a.b.c`: cheap enough to write wherever it is used."""
    return all(part.isidentifier() for part in text.split("."))


def operand_names(exprs: Sequence[Expr]) -> frozenset[str]:
    return joined(tuple(exprs))


__all__ = [
    "MUL",
    "SIZE_LIMIT",
    "Op",
    "Size",
    "Type",
    "Writer",
    "dim_bounds",
    "operand_names",
    "shape_text",
]
