"""Walks an entry and what it calls, and collects each index into an axis and integer divisor.

Only what certainly runs is followed: both sides of a condition that the inputs decide (under it as
a guard), neither side of one that they don't; the first round of a `while`; every round of a `for`
over known numbers, and its first round with the values it starts from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from linnet.dims import Dim
from linnet.ir.core import Function, GenericVar, Op, Region, Value
from linnet.ir.renumber import substitute_attrs
from linnet.ir.semantics import SEMANTICS
from linnet.passes.bounding.transfer import Case, transfer
from linnet.passes.bounding.values import (
    UNKNOWN,
    Abstract,
    Found,
    Guard,
    Held,
    Host,
    Interner,
    Known,
    Leaf,
    Leaves,
    Missing,
    Several,
)
from linnet.types import (
    DType,
    GenericArg,
    OptionalType,
    StructType,
    Subst,
    TensorType,
    TupleType,
    Type,
)

# Operations looked at in all. A program that needs more gets fewer checks, never a longer wait.
MAX_WORK = 20_000
MAX_DEPTH = 60
_INTEGERS = frozenset(dtype for dtype in DType if dtype.is_integer)


class OutOfWork(Exception):
    """The analysis has looked at enough."""


@dataclass(slots=True)
class Frame:
    """One call: its substitution into the entry's sizes, and what is known of its values."""

    subst: Subst
    values: dict[Value, Abstract]
    depth: int

    def type(self, value: Value) -> Type:
        return self.subst.type(value.type)

    def known(self, value: Value) -> Known:
        found = self.values.get(value, UNKNOWN)
        return found if isinstance(found, Known) else UNKNOWN


Control = Callable[["Analysis", Frame, Op], tuple[Abstract, ...]]


@dataclass(slots=True)
class Analysis:
    """The walk's state; `found` is what it is for. `controls` follow control flow and calls."""

    functions: Mapping[str, Function]
    origins: Mapping[str, str]
    controls: Mapping[str, Control]
    leaves: Leaves = field(default_factory=Leaves)
    interner: Interner = field(default_factory=Interner)
    found: list[Found] = field(default_factory=list)
    guards: tuple[Guard, ...] = ()
    positive: tuple[Dim, ...] = ()
    muted: int = 0  # inside it nothing is recorded
    work: int = 0

    def entry(self, function: Function, args: Mapping[GenericVar, GenericArg]) -> None:
        """Fills `found` for an entry whose generics are bound to `args` or stand for themselves."""
        frame = Frame(Subst.of(dict(args)), {}, 0)
        for param in function.params:
            frame.values[param.value] = self.input(param.name, frame.type(param.value))
        try:
            self.region(frame, function.body, ())
        except OutOfWork:
            return

    def input(self, name: str, type_: Type) -> Abstract:
        if not isinstance(type_, TensorType) or not isinstance(type_.dtype, DType):
            return UNKNOWN
        if type_.dtype.is_float:
            return UNKNOWN
        host = self.interner.make("input", (), {"name": name}, type_, frozenset((name,)))
        if not type_.dtype.is_integer:
            return Known(host=host)
        if type_.is_scalar:
            value = self.leaves.dim(Leaf("value", name))
            return Known(value, value, dense=True, host=host)
        lo, hi = (self.leaves.dim(leaf) for leaf in (Leaf("min", name), Leaf("max", name)))
        return Known(lo, hi, frozenset(range(len(type_.shape))), host=host)

    # --- regions and operations ------------------------------------------------------------------

    def region(
        self, frame: Frame, region: Region, args: Sequence[Abstract]
    ) -> tuple[Abstract, ...]:
        frame.values.update(zip(region.params, args, strict=False))
        for op in region.ops:
            self.work += 1
            if self.work > MAX_WORK:
                raise OutOfWork
            results = self.op(frame, op)
            frame.values.update(zip(op.results, results, strict=True))
        return tuple(frame.values.get(value, UNKNOWN) for value in region.results)

    def op(self, frame: Frame, op: Op) -> tuple[Abstract, ...]:
        control = self.controls.get(op.kind)
        if control is not None:
            return control(self, frame, op)
        operands = [frame.values.get(value, UNKNOWN) for value in op.operands]
        match op.kind:
            case "tuple" | "struct":
                return (Several(tuple(operands)),)
            case "tuple_get" | "struct_get":
                return (self.item(op, operands[0]),)
            case "some":
                return (Held(operands[0]),)
            case "none":
                return (Missing(),)
            case _ if op.kind in SEMANTICS:
                return (self.pure(frame, op),)
            case _:
                return (UNKNOWN,) * len(op.results)

    @staticmethod
    def item(op: Op, whole: Abstract) -> Abstract:
        if not isinstance(whole, Several):
            return UNKNOWN
        type_ = op.operands[0].type
        if isinstance(type_, StructType):
            names = [name for name, _ in type_.fields]
            return whole.items[names.index(op.attrs["field"])]
        return whole.items[op.attrs["index"]] if isinstance(type_, TupleType) else UNKNOWN

    def pure(self, frame: Frame, op: Op) -> Known:
        """A row of NumPy semantics: its bounds, and its host expression when operands have one."""
        operands = tuple(map(frame.known, op.operands))
        result = frame.type(op.result)
        if not isinstance(result, TensorType):
            return UNKNOWN
        if not (op.kind == "gather" or self.matters(op, operands, result)):
            return UNKNOWN
        attrs = substitute_attrs(op, frame.subst)
        inputs = tuple(map(frame.type, op.operands))
        if op.kind == "gather":
            self.gather(op, operands, attrs["source"], inputs, result)
        elif op.kind in ("div", "rem") and result.dtype in _INTEGERS:
            sizes = [item for item in result.shape if isinstance(item, Dim)]
            self.record(op, operands[1], None, sizes)
        bounds = transfer(Case(op.kind, operands, attrs, inputs, result, self.leaves))
        hosts = tuple(x.host for x in operands if x.host is not None)
        if len(hosts) < len(operands):
            return bounds
        return replace(bounds, host=self.interner.make(op.kind, hosts, attrs, result))

    @staticmethod
    def matters(op: Op, operands: Sequence[Known], result: TensorType) -> bool:
        """Whether an index may come of it: floats only when they are made of what is known."""
        if isinstance(result.dtype, DType) and not result.dtype.is_float:
            return True
        return any(x.host is not None for x in operands)

    def gather(
        self,
        op: Op,
        operands: Sequence[Known],
        source: Sequence[tuple[str, int]],
        inputs: Sequence[Type],
        result: TensorType,
    ) -> None:
        """Records each index; it is used when the result has elements."""
        type_ = inputs[0]
        if not isinstance(type_, TensorType):
            return
        sizes = [item for item in result.shape if isinstance(item, Dim)]
        for item, (how, number) in zip(type_.shape, source, strict=True):
            if how == "index" and isinstance(item, Dim):
                self.record(op, operands[1 + number], item, sizes)

    def record(self, op: Op, index: Known, extent: Dim | None, sizes: Sequence[Dim]) -> None:
        """`index` is used on an axis of `extent`, or as a divisor, whenever every one of `sizes` is
        positive."""
        if self.muted or not self.depends(index):
            return
        if index.parts and all(part.bounded for part in index.parts):
            for part in index.parts:
                self.record(op, part, extent, sizes)
            return
        positive = (*self.positive, *(size for size in sizes if size.constant is None))
        unique = tuple(dict.fromkeys(positive))
        self.found.append(Found(index, extent, unique, self.guards, op))

    def depends(self, value: Abstract) -> bool:
        """Whether it depends on inputs in a way that can be worked out."""
        match value:
            case Known(lo=lo, hi=hi, host=host, parts=parts):
                names = self.leaves.names(lo) | self.leaves.names(hi)
                known = bool(names) or (host is not None and bool(host.names))
                return known or any(map(self.depends, parts))
            case Several(items):
                return any(map(self.depends, items))
            case Held(inner):
                return self.depends(inner)
            case Missing():
                return False

    def scalar_op(self, kind: str, operands: Sequence[Known], type_: TensorType) -> Known:
        """An elementwise operation made up here, on values of one type."""
        bounds = transfer(
            Case(kind, tuple(operands), {}, (type_,) * len(operands), type_, self.leaves)
        )
        hosts = tuple(x.host for x in operands if x.host is not None)
        if len(hosts) < len(operands):
            return bounds
        return replace(bounds, host=self.interner.make(kind, hosts, {}, type_))

    def number(self, dim: Dim, type_: TensorType) -> Known:
        """A compile-time number in the type of an index."""
        host: Host = self.interner.make("dim", (), {"dim": dim}, type_)
        return Known(dim, dim, dense=True, host=host)


def could_index(type_: Type) -> bool:
    """Whether a value of this type may hold an index, or a part of one."""
    match type_:
        case TensorType(dtype=dtype):
            return not (isinstance(dtype, DType) and dtype.is_float)
        case TupleType(items):
            return any(map(could_index, items))
        case StructType(fields=fields):
            return any(could_index(inner) for _, inner in fields)
        case OptionalType(inner):
            return could_index(inner)
        case _:
            return False
