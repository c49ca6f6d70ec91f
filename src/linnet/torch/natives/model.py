"""What an entry of the table is, and how kernels read their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linnet.backends.emit.calls import made, operands_of, text_of
from linnet.backends.expr import Expr
from linnet.backends.folding import literal
from linnet.backends.natives import Case, Predicate
from linnet.backends.natives import Native as AnyNative
from linnet.ir import Op, Value
from linnet.torch.emit.writer import Writer
from linnet.types import DType, TensorType

KernelWriter = Callable[[Writer, Op], Expr]
if TYPE_CHECKING:
    Native = AnyNative[KernelWriter]
else:  # an alias with arguments sets an attribute of what it makes, which has slots
    Native = AnyNative


def calling(w: Writer, op: Op, function: str, *extra: str) -> Expr:
    """`function(operands..., extra...)`, through a kernel's copy in the module."""
    exprs = operands_of(w, op)
    name = w.module.helper(function)
    texts = [*(e.text for e in exprs), *extra]
    return made(op, f"{name}({', '.join(texts)})", exprs)


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


__all__ = ["Case", "KernelWriter", "Native", "Predicate", "calling", "made", "number_text",
           "operands_of", "text_of"]  # fmt: skip
