"""What an entry of the table is, and how kernels read their operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linnet.backends.expr import ATOM, Expr, joined
from linnet.backends.folding import literal
from linnet.backends.natives import Case, Predicate
from linnet.backends.natives import Native as AnyNative
from linnet.ir import Op, Value
from linnet.jax.emit.dtypes import dtype_of
from linnet.jax.emit.writer import Writer
from linnet.types import TensorType

KernelWriter = Callable[[Writer, Op], Expr]
if TYPE_CHECKING:
    Native = AnyNative[KernelWriter]
else:  # an alias with arguments sets an attribute of what it makes, which has slots
    Native = AnyNative


def text_of(w: Writer, value: Value) -> Expr:
    """One use of an operand: arrays whole, host numbers as they are."""
    expr = w.get(value)
    if not isinstance(value.type, TensorType) or not value.type.shape:
        return expr
    return w.whole(expr, value.type)


def operands_of(w: Writer, op: Op) -> list[Expr]:
    return [text_of(w, value) for value in op.operands]


def made(op: Op, text: str, exprs: Sequence[Expr], prec: int = ATOM) -> Expr:
    """A native's result, of its whole shape."""
    type_ = op.results[0].type
    rank = len(type_.shape) if isinstance(type_, TensorType) else 0
    return Expr(text, prec, rank=rank, names=joined(tuple(exprs)))


def number_text(expr: Expr) -> str:
    """A scalar operand, a Python number or an array of rank 0."""
    return literal(expr.const) if expr.const is not None else expr.text


def calling(function: str, *extra: str) -> KernelWriter:
    """`function(operands..., extra...)`, through a kernel's copy in the module."""

    def emit(w: Writer, op: Op) -> Expr:
        exprs = operands_of(w, op)
        texts = [*(number_text(e) for e in exprs), *extra]
        return made(op, f"{w.module.helper(function)}({', '.join(texts)})", exprs)

    return emit


__all__ = ["Case", "KernelWriter", "Native", "Predicate", "calling", "dtype_of", "made",
           "number_text", "operands_of", "text_of"]  # fmt: skip
