"""What a function is called with, and how natives read their operands."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.backends.emit.dtypes import rank_of
from linnet.backends.emit.module import Callee
from linnet.backends.emit.writer import Writer
from linnet.backends.expr import ATOM, Expr, joined
from linnet.ir import Op, Value
from linnet.types import TensorType


def arguments(w: Writer, op: Op, callee: Callee) -> list[Expr]:
    """The operands of a call, and the sizes that no array shows."""
    parts: list[Expr] = []
    for operand, host in zip(op.operands, callee.host_params, strict=True):
        parts.append(w.get(operand) if host else w.component(operand))
    for index in callee.size_args:
        size = w.size(op.attrs["generics"][index])
        parts.append(Expr(size.text, size.prec, names=size.names))
    return parts


def text_of(w: Writer, value: Value) -> Expr:
    """One use of a native's operand: tensors whole, host numbers as they are."""
    expr = w.get(value)
    if not isinstance(value.type, TensorType) or not value.type.shape:
        return expr
    return w.whole(expr, value.type)


def operands_of(w: Writer, op: Op) -> list[Expr]:
    return [text_of(w, value) for value in op.operands]


def made(op: Op, text: str, exprs: Sequence[Expr], prec: int = ATOM) -> Expr:
    """A native's result, of its whole shape."""
    return Expr(text, prec, rank=rank_of(op.results[0].type), names=joined(tuple(exprs)))
