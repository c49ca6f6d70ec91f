"""Writing one function: lines, local names, and which values get a line of their own.

A value that is used once, in the region that made it, and is short stays an expression inside its
user; the rest are assigned to a variable named after the source's name. The function's state is one
variable, `state`, rebound by every write: what still has to read the state before it is assigned
first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linnet.backends.expr import ADD, ATOM, Expr
from linnet.backends.folding import literal
from linnet.backends.names import Names
from linnet.diagnostics import InternalError
from linnet.dims import Dim, Symbol
from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.jax.emit.dtypes import dtype_of, spelled, tensor
from linnet.jax.emit.names import field
from linnet.types import (
    DType,
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linnet.jax.emit.module import ModuleWriter

NEST_LIMIT = 60
SIZE_LIMIT = 2**31 - 1
STATE = "state"
BLOCK = "block"

# A step from the function's state down: a member, an element's number, or a loop's counter.
Step = str | int


@dataclass(frozen=True, slots=True)
class Size:
    """A dimension as Python source."""

    text: str
    prec: int
    names: frozenset[str]
    constant: int | None


@dataclass(frozen=True, slots=True)
class Element:
    """What a loop over a sub array calls its element: the block, its declaration, and the way to
    its state, in which `counter` is the loop's number."""

    block: str
    kind: str
    state: tuple[Step, ...]
    counter: str


class Writer:
    """The state of one function being written."""

    def __init__(self, module: ModuleWriter, name: str, function: Function) -> None:
        self.module, self.function, self.key = module, function, name
        self.names = Names((*module.top_names, STATE, BLOCK))
        self.lines: list[str] = []
        self.indent = 1
        self.env: dict[int, Expr] = {}
        self.values: dict[int, Value] = {}
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
        self.subs: dict[SubVar, Element] = {}
        self.locked: frozenset[str] = frozenset()
        self.hints: dict[int, str] = {}
        self.makers: dict[int, Op] = {}
        self.scratches: dict[tuple[int, str], str] = {}

    # --- uses -------------------------------------------------------------------------------------

    def count(self, region: Region) -> None:
        """Counts the uses in a function's body, before it is written."""
        self._count(region, {}, [0])

    def _count(self, region: Region, home: dict[int, int], serial: list[int]) -> None:
        number = serial[0]
        serial[0] += 1
        for value in region.params:
            home[value.id] = number
        for op in region.ops:
            if op.kind == "tuple_get":
                self.items[op.operands[0].id].append(op.results[0])
                self.item_index[op.results[0].id] = op.attrs["index"]
            self._uses(op.operands, home, number)
            for inner in op.regions:
                self._count(inner, home, serial)
            for value in op.results:
                home[value.id] = number
                self.makers[value.id] = op
        self._uses(region.results, home, number)
        if region.ops and len(region.results) == 1 and region.ops[-1].results == region.results:
            self.tail.add(region.results[0].id)

    def _uses(self, values: Iterable[Value], home: Mapping[int, int], number: int) -> None:
        for value in values:
            self.left[value.id] += 1
            if home.get(value.id, number) != number:
                self.crossing.add(value.id)

    # --- text -------------------------------------------------------------------------------------

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

    # --- values -----------------------------------------------------------------------------------

    def get(self, value: Value) -> Expr:
        """The value's expression for one use."""
        self.left[value.id] -= 1
        self.pending.pop(value.id, None)
        found = self.env.get(value.id)
        if found is None:
            raise InternalError("jax.emit", f"{value!r} is used before it is made", value.span)
        return found

    def peek(self, value: Value) -> Expr:
        return self.env[value.id]

    def define(self, value: Value, expr: Expr, *, hint: str = "") -> None:
        """Gives `value` its expression."""
        uses = self.left[value.id]
        if uses == 0:
            return
        crossing = value.id in self.crossing
        if expr.const is not None or (expr.prec == ATOM and _is_path(expr.text)):
            if not (crossing and STATE in expr.names):
                self.hold(value, expr)
                return
        elif uses == 1 and value.id in self.tail and STATE not in expr.names:
            self.hold(value, expr)
            return
        elif uses == 1 and not crossing and not value.name and len(expr.text) <= NEST_LIMIT:
            self.hold(value, expr)
            self.pending[value.id] = (value, expr)
            self.hints[value.id] = hint
            return
        self.assign(value, expr, hint)

    def hold(self, value: Value, expr: Expr) -> None:
        """Makes `expr` the value's expression from now on."""
        self.env[value.id] = expr
        self.values[value.id] = value
        for name in expr.names:
            self.holders[name].add(value.id)

    def assign(self, value: Value, expr: Expr, hint: str = "") -> None:
        """Writes `name = expr`."""
        name = self.variable(value, value.name or hint or "value", expr)
        if name != expr.text:
            self.line(f"{name} = {expr.text}")
        self.hold(value, expr.renamed(name))

    def place_for(self, value: Value, hint: str) -> str:
        """A variable that the line being written sets to `value`, an array or aggregate."""
        name = self.variable(value, value.name or hint or "value")
        rank = len(value.type.shape) if isinstance(value.type, TensorType) else 0
        self.hold(value, Expr(name, rank=rank, names=frozenset((name,))))
        return name

    def unpacking(self, value: Value) -> list[str] | None:
        """The variables of a tuple that is only ever taken apart, None where it is not."""
        items = self.items[value.id]
        type_ = value.type
        if not isinstance(type_, TupleType) or not items or value.id in self.crossing:
            return None
        indices = [self.item_index[item.id] for item in items]
        if self.left[value.id] != len(items) or len(set(indices)) != len(indices):
            return None
        before = self.locked
        places: list[str] = ["_"] * len(type_.items)
        for item in items:
            places[self.item_index[item.id]] = self.place_for(item, "item")
            self.unpacked.add(item.id)
        self.locked = before
        return places

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

    def scratch(self, wanted: str) -> str:
        """A variable that is read by the next line alone."""
        key = (self.region, wanted)
        if key not in self.scratches:
            self.scratches[key] = self.names.fresh(wanted)
        return self.scratches[key]

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

    # --- state ------------------------------------------------------------------------------------

    def keep_old_state(self, locked: frozenset[str] = frozenset()) -> None:
        """Assigns what still has to read the present state: `state` is about to be rebound."""
        self.flush(locked)
        before, self.locked = self.locked, self.locked | locked
        for reader in sorted(self.holders.pop(STATE, ())):
            expr = self.env.get(reader)
            if expr is None or STATE not in expr.names or self.left[reader] <= 0:
                continue
            value = self.values[reader]
            self.assign(value, expr, "old")
        self.locked = before

    def state_path(self, ref: Ref) -> tuple[Step, ...]:
        start = () if ref.root is None else self.subs[ref.root].state
        steps: list[Step] = [f"<{step}>" if stacked else step for step, stacked in self.steps(ref)]
        return (*start, *steps)

    def state_text(self, path: Sequence[Step]) -> str:
        text = STATE
        for step in path:
            if not self._is_index(step):
                text += f".{field(str(step))}"
            elif str(step).startswith("<"):
                text = f"{self.module.helper('element')}({text}, {str(step).strip('<>')})"
            else:
                text += f"[{str(step).strip('[]')}]"
        return text

    def _is_index(self, step: Step) -> bool:
        """Whether the step numbers an element: of a tuple (`[i]`), of stacked blocks (`<i>`)."""
        return isinstance(step, int) or step.startswith(("[", "<"))

    def steps(self, ref: Ref) -> list[tuple[str | int, bool]]:
        """The steps of a Ref, each with whether it numbers an element of stacked blocks."""
        at = str(self.function.block) if ref.root is None else self.subs[ref.root].kind
        blocks, stacked = self.module.program.blocks, False
        found: list[tuple[str | int, bool]] = []
        for step in ref.steps:
            if isinstance(step, int):
                found.append((step, stacked))
                continue
            found.append((step, False))
            subs = blocks[at].subs if at in blocks else {}
            stacked = (at, step) in self.module.options.stacked
            at = subs[step].block if step in subs else at
        return found

    def store(self, path: Sequence[Step], text: str) -> None:
        """Rebinds `state` with `text` at `path`."""
        if not path:
            if text != STATE:
                self.line(f"{STATE} = {text}")
            return
        if len(path) == 1:
            self.line(f"{STATE} = {STATE}._replace({field(str(path[0]))}={text})")
            return
        steps = ", ".join(
            str(s).strip("[]<>") if self._is_index(s) else repr(field(str(s))) for s in path
        )
        self.line(f"{STATE} = {self.module.helper('put')}({STATE}, {text}, {steps})")

    # --- forms ------------------------------------------------------------------------------------

    def tensor(self, value: Value) -> Expr:
        """One use of the value as an array of its whole shape."""
        return self.whole(self.get(value), tensor(value.type))

    def whole(self, expr: Expr, type_: TensorType) -> Expr:
        dims = type_.dims
        if expr.host:
            return self.filled(expr, type_)
        units = {p for p in expr.unit if dims[len(dims) - p].constant != 1}
        if expr.rank == len(dims) and not units:
            return replace(expr, unit=frozenset())
        shape, names = self.shape(dims)
        text = f"jnp.broadcast_to({expr.text}, {shape})"
        return replace(
            expr, text=text, prec=ATOM, rank=len(dims), unit=frozenset(), names=expr.names | names
        )

    def shape(self, dims: Sequence[Dim]) -> tuple[str, frozenset[str]]:
        """A Python tuple of sizes, and the variables in it."""
        sizes = [self.size(d) for d in dims]
        names = frozenset().union(*(s.names for s in sizes))
        inner = ", ".join(s.text for s in sizes)
        return (f"({inner},)" if len(sizes) == 1 else f"({inner})"), names

    def filled(self, expr: Expr, type_: TensorType) -> Expr:
        """An array of equal elements, from a host number."""
        dtype = dtype_of(type_)
        if not type_.dims:
            return self.scalar(expr, dtype)
        shape, names = self.shape(type_.dims)
        names = names | expr.names
        known = None if expr.const is None else literal(expr.const)
        if known in ("0", "0.0", "1", "1.0"):
            kind = "zeros" if known.startswith("0") else "ones"
            text = f"jnp.{kind}({shape}, {spelled(dtype)})"
            return Expr(text, rank=len(type_.dims), names=names)
        value = self.number(expr, dtype)
        text = f"jnp.full({shape}, {value.text}, {spelled(dtype)})"
        return Expr(text, rank=len(type_.dims), names=names)

    def scalar(self, expr: Expr, dtype: DType) -> Expr:
        """A host number as an array of rank 0."""
        text = f"jnp.{'bool_' if dtype is DType.BOOL else spelled(dtype)[4:]}({expr.text})"
        return Expr(text, names=expr.names)

    def number(self, expr: Expr, dtype: DType) -> Expr:
        """A host number as arithmetic with an array of `dtype` takes it: Python's own where JAX
        gives it the array's dtype without a loss."""
        if dtype is DType.U64 and expr.host and (expr.const is None or int(expr.const) >= 2**63):
            return self.scalar(expr, dtype)
        return expr

    def component(self, value: Value) -> Expr:
        """One use of the value inside an aggregate, a loop's carry or a call, where scalars are
        arrays."""
        if isinstance(value.type, TensorType):
            return self.tensor(value)
        return self.get(value)

    def zeros(self, type_: Type) -> tuple[str, frozenset[str]]:
        """What an absent optional holds in its value's place."""
        match type_:
            case TensorType():
                made = self.filled(Expr("0", host=True, const=0), type_)
                return made.text, made.names
            case TupleType(items):
                parts = [self.zeros(t) for t in items]
                inner = ", ".join(t for t, _ in parts)
                text = f"({inner},)" if len(parts) == 1 else f"({inner})"
                return text, frozenset().union(*(n for _, n in parts))
            case StructType(fields=fields):
                parts = [self.zeros(t) for _, t in fields]
                inner = ", ".join(t for t, _ in parts)
                return f"{self.module.struct(type_)}({inner})", frozenset().union(
                    *(n for _, n in parts)
                )
            case EnumType():
                return "jnp.int32(0)", frozenset()
            case OptionalType(inner):
                text, names = self.zeros(inner)
                return f"(False, {text})", names
            case _:
                raise InternalError("jax.emit", f"{type_} has no zero", self.function.span)

    # --- sizes and blocks -------------------------------------------------------------------------

    def size(self, dim: Dim) -> Size:
        constant = dim.constant
        if constant is not None:
            return Size(str(constant), ATOM, frozenset(), constant)
        for symbol in dim.symbols:
            if symbol not in self.size_names:
                what = f"the size {symbol} in {dim} is not known here"
                raise InternalError("jax.emit", what, self.function.span)
        self.used_sizes.update(dim.symbols)
        text = dim.render(lambda s: self.size_names[s], floordiv="//")
        names = frozenset(self.size_names[s] for s in dim.symbols)
        return Size(text, ATOM if text.isidentifier() else ADD, names, None)

    def ref(self, ref: Ref) -> str:
        text = BLOCK if ref.root is None else self.subs[ref.root].block
        for step, stacked in self.steps(ref):
            if stacked:
                text = f"{self.module.helper('element')}({text}, {step})"
            else:
                text += f"[{step}]" if isinstance(step, int) else f".{field(step)}"
        return text

    def ref_names(self, ref: Ref) -> frozenset[str]:
        return frozenset() if ref.root is None else frozenset((self.subs[ref.root].block,))


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
