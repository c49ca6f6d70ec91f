"""What an entry of the table is, and how kernels read their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linnet.backends.emit.calls import made, operands_of, text_of
from linnet.backends.emit.dtypes import dtype_of
from linnet.backends.expr import Expr
from linnet.backends.folding import literal
from linnet.backends.natives import Case, Predicate
from linnet.backends.natives import Native as AnyNative
from linnet.ir import Op
from linnet.jax.emit.writer import Writer

KernelWriter = Callable[[Writer, Op], Expr]
if TYPE_CHECKING:
    Native = AnyNative[KernelWriter]
else:  # an alias with arguments sets an attribute of what it makes, which has slots
    Native = AnyNative


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
