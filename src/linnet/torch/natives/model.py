"""What an entry of the table is, and how kernels read their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linnet.dims import Dim
from linnet.ir import Op, Value
from linnet.passes.natives import NativeQuery
from linnet.torch.emit.expr import ATOM, Expr, joined
from linnet.torch.emit.folding import literal
from linnet.torch.emit.writer import Writer
from linnet.types import DType, OptionalType, TensorType, scalar

NUMERICS = ("exact", "equivalent", "fast")

Predicate = Callable[["Case"], str | None]
KernelWriter = Callable[[Writer, Op], Expr]


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
class Native:
    """One row: the op's path, what the kernel is called and does, when it applies, its code.

    `when` gives None where it applies, else the reason why not, in a few words. `operands` chooses
    the values that the kernel reads (default: the call's own). `update` and `alias` tell the state
    pass which operand the kernel writes or may share memory with.
    """

    op: str
    kernel: str
    note: str
    emit: KernelWriter
    when: Predicate = field(default=lambda case: None)
    operands: Callable[[Case], Sequence[Value]] = field(
        default=lambda case: tuple(case.operands.values())
    )
    attrs: Callable[[Case], Mapping[str, Any]] = field(default=lambda case: {})
    update: int | None = None
    alias: tuple[int, ...] = ()
    numerics: frozenset[str] = frozenset(("equivalent", "fast"))


# --- for kernels' code ----------------------------------------------------------------------


def text_of(w: Writer, value: Value) -> Expr:
    """One use of an operand: tensors whole, host numbers as they are."""
    expr = w.get(value)
    if not isinstance(value.type, TensorType):
        return expr
    if not value.type.shape:
        return expr
    return w.whole(expr, value.type)


def operands_of(w: Writer, op: Op) -> list[Expr]:
    return [text_of(w, value) for value in op.operands]


def calling(w: Writer, op: Op, function: str, *extra: str) -> Expr:
    """`function(operands..., extra...)`, through a kernel's copy in the module."""
    exprs = operands_of(w, op)
    name = w.module.helper(function)
    texts = [*(e.text for e in exprs), *extra]
    return made(op, f"{name}({', '.join(texts)})", exprs)


def made(op: Op, text: str, exprs: Sequence[Expr], prec: int = ATOM) -> Expr:
    """A native's result, of its whole shape."""
    type_ = op.results[0].type
    rank = len(type_.shape) if isinstance(type_, TensorType) else 0
    return Expr(text, prec, rank=rank, names=joined(tuple(exprs)))


def number_text(w: Writer, value: Value, expr: Expr) -> str:
    """A scalar operand as a Python number."""
    if expr.const is not None:
        return literal(expr.const)
    if expr.host:
        return expr.text
    type_ = value.type
    floats = (
        isinstance(type_, TensorType) and isinstance(type_.dtype, DType) and type_.dtype.is_float
    )
    return f"{'float' if floats else 'int'}({expr.text})"


__all__ = ["NUMERICS", "Case", "KernelWriter", "Native", "Predicate", "calling", "made",
           "number_text", "operands_of", "scalar", "text_of"]  # fmt: skip
