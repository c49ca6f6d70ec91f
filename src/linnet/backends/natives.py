"""Tables of native implementations: which op, when, and the code.

Each backend fills one; the first row of an op that applies is taken. `exact` numerics takes none:
every op runs its body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from linnet.dims import Dim
from linnet.ir import Value
from linnet.passes.natives import NativeChoice, NativeQuery, NativeSelector
from linnet.types import DType, OptionalType, TensorType

NUMERICS = ("exact", "equivalent", "fast")

Predicate = Callable[["Case"], str | None]
Emit = TypeVar("Emit")


@dataclass(frozen=True, slots=True)
class Case:
    """A call that a native may answer, its operands by the op's parameter names."""

    query: NativeQuery
    numerics: str
    device: str
    trainable: bool
    operands: Mapping[str, Value]

    def type(self, name: str) -> TensorType:
        type_ = self.operands[name].type
        inner = type_.inner if isinstance(type_, OptionalType) else type_
        assert isinstance(inner, TensorType)
        return inner

    def dtype(self, name: str) -> DType:
        dtype = self.type(name).dtype
        assert isinstance(dtype, DType)
        return dtype

    def fact(self, name: str) -> Any:
        """What is known of the mask `name`, or None."""
        order = list(self.operands)
        return self.query.facts.get(order.index(name)) if name in order else None

    def generic(self, name: str) -> int | None:
        """A generic of the op's own, where it is bound to a number."""
        arg = getattr(self.query, "generics", {}).get(name)
        return arg.constant if isinstance(arg, Dim) else None

    def extent(self, name: str, axis: int) -> int | None:
        """An extent, where it is a number."""
        return self.type(name).dims[axis].constant


@dataclass(frozen=True, slots=True)
class Native(Generic[Emit]):
    """One row: the op's path, what the kernel is called and does, when it applies, its code.

    `when` gives None where it applies, else the reason why not, in a few words. `operands` chooses
    the values that the kernel reads (default: the call's own). `update` and `alias` tell the state
    pass which operand the kernel writes or may share memory with. `joins` lists the operands that
    calls agreeing in all others may have side by side, along their first axes and the result's
    last, in one call (see `linnet.passes.join`); never when training.
    """

    op: str
    kernel: str
    note: str
    emit: Emit
    when: Predicate = field(default=lambda case: None)
    operands: Callable[[Case], Sequence[Value]] = field(
        default=lambda case: tuple(case.operands.values())
    )
    attrs: Callable[[Case], Mapping[str, Any]] = field(default=lambda case: {})
    update: int | None = None
    alias: tuple[int, ...] = ()
    joins: tuple[int, ...] = ()
    numerics: frozenset[str] = frozenset(("equivalent", "fast"))


@dataclass(frozen=True, slots=True)
class Decision(Generic[Emit]):
    """One native looked at for one call: `reason` says why it does not apply, None: it does."""

    native: Native[Emit]
    reason: str | None


class Table(Generic[Emit]):
    """A backend's natives."""

    def __init__(self, rows: Sequence[Native[Emit]]) -> None:
        self.rows = tuple(rows)
        self.by_op: dict[str, tuple[Native[Emit], ...]] = {}
        for row in self.rows:
            self.by_op[row.op] = (*self.by_op.get(row.op, ()), row)
        self.kernels: dict[str, Emit] = {row.kernel: row.emit for row in self.rows}

    def decide(
        self, query: NativeQuery, numerics: str = "fast", device: str = "cpu",
        trainable: bool = False,
    ) -> tuple[Decision[Emit], ...]:  # fmt: skip
        """What the table says about a call, row by row, up to the first row that applies."""
        case = _case(query, numerics, device, trainable)
        found: list[Decision[Emit]] = []
        for native in self.by_op.get(query.origin, ()):
            reason = native.when(case)
            if numerics not in native.numerics:
                reason = f"not under {numerics} numerics"
            found.append(Decision(native, reason))
            if reason is None:
                break
        return tuple(found)

    def selector(self, numerics: str, device: str, trainable: bool) -> NativeSelector | None:
        """What `lower` asks for each call of an op."""
        if numerics == "exact":
            return None

        def select(query: NativeQuery) -> NativeChoice | None:
            decisions = self.decide(query, numerics, device, trainable)
            if not decisions or decisions[-1].reason is not None:
                return None
            native = decisions[-1].native
            case = _case(query, numerics, device, trainable)
            operands = tuple(native.operands(case))
            attrs = dict(native.attrs(case))
            if native.update is not None:
                attrs["update"] = native.update
            if native.alias:
                attrs["alias"] = native.alias
            if native.joins and not trainable:
                attrs["joins"] = tuple(k for k in native.joins if k < len(operands))
            return NativeChoice(native.kernel, operands, attrs)

        return select


def _case(query: NativeQuery, numerics: str, device: str, trainable: bool) -> Case:
    names = [p.name for p in query.callee.params]
    operands = dict(zip(names, query.call.operands, strict=True))
    return Case(query, numerics, device, trainable, operands)
