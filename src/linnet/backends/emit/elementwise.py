"""Constants, arithmetic, comparisons, casts and `select`."""

from __future__ import annotations

from dataclasses import replace

from linnet.backends import folding
from linnet.backends.emit import scalars
from linnet.backends.emit.dtypes import dtype_of, tensor
from linnet.backends.emit.scalars import COMPARISONS, OPERATORS, operator, wrapped
from linnet.backends.emit.sizes import dim_bounds
from linnet.backends.emit.writer import Writer
from linnet.backends.expr import ATOM, TERNARY, UNARY, Expr, aligned, integer, joined, number
from linnet.ir import Op
from linnet.types import DType, EnumType, TensorType, scalar

_FUNCTIONS = {"exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor"}
BINARY = frozenset((*OPERATORS, "rem", "min", "max"))
UNARY_KINDS = frozenset((*_FUNCTIONS, "neg", "not", "abs"))
_HINTS = {
    "add": "total", "sub": "difference", "mul": "product", "div": "quotient",
    **dict.fromkeys(COMPARISONS, "flags"),
}  # fmt: skip


def as_tensor(w: Writer, expr: Expr, dtype: DType) -> Expr:
    """A host number as a tensor of rank 0."""
    return w.filled(expr, scalar(dtype)) if expr.host else expr


def combined(text: str, a: Expr, b: Expr, prec: int = ATOM) -> Expr:
    """The elementwise result of two operands."""
    rank, unit = aligned((a, b))
    return Expr(text, prec, rank=rank, unit=unit, names=joined((a, b)))


# --- nothing to read ------------------------------------------------------------------------------


def emit_const(w: Writer, op: Op) -> None:
    w.define(op.result, number(op.attrs["value"]))


def emit_dim(w: Writer, op: Op) -> None:
    dtype, dim = dtype_of(op.result.type), op.attrs["dim"]
    if dim.constant is not None:
        w.define(op.result, number(folding.convert(dim.constant, dtype)))
        return
    size = w.size(dim)
    host = integer(size.text, size.prec, dim_bounds(dim), size.names)
    if dtype.is_float:
        w.define(op.result, as_tensor(w, host, dtype), hint="size")
    else:
        w.define(op.result, wrapped(host, dtype))


def emit_iota(w: Writer, op: Op) -> None:
    type_ = tensor(op.result.type)
    size, dtype = w.size(type_.dims[0]), w.spelled(dtype_of(type_))
    text = f"{w.words.function('arange')}({size.text}, dtype={dtype}{w.words.device})"
    w.define(op.result, Expr(text, rank=1, names=size.names), hint="positions")


# --- one operand ----------------------------------------------------------------------------------


def emit_unary(w: Writer, op: Op) -> None:
    a, dtype = w.get(op.operands[0]), dtype_of(op.operands[0].type)
    if a.host:
        result = scalars.unary(op.kind, a, dtype)
        if result is not None:
            w.define(op.result, result)
            return
        a = as_tensor(w, a, dtype)
    w.define(op.result, _tensor_unary(w, op.kind, a, dtype), hint=op.kind)


def _tensor_unary(w: Writer, kind: str, a: Expr, dtype: DType) -> Expr:
    fresh = replace(a, alias=frozenset())
    if kind in _FUNCTIONS:
        return replace(fresh, text=f"{w.words.function(kind)}({a.text})", prec=ATOM)
    if kind == "not":
        return replace(fresh, text=f"~{a.at(UNARY)}", prec=UNARY)
    if kind == "neg":
        return w.masked(replace(fresh, text=f"-{a.at(UNARY)}", prec=UNARY), dtype)
    return a if dtype.cls == "unsigned" else replace(fresh, text=w.absolute(a), prec=ATOM)


def emit_cast(w: Writer, op: Op) -> None:
    a = w.get(op.operands[0])
    source, target = dtype_of(op.operands[0].type), dtype_of(op.result.type)
    if a.host:
        result = scalars.cast(a, source, target)
        if result is not None:
            w.define(op.result, result)
            return
        a = as_tensor(w, a, source)
    w.define(op.result, a if source is target else w.cast(a, source, target), hint=str(target))


# --- two operands ---------------------------------------------------------------------------------


def emit_binary(w: Writer, op: Op) -> None:
    a, b = w.get(op.operands[0]), w.get(op.operands[1])
    if isinstance(op.operands[0].type, EnumType):
        text, prec, names = operator(op.kind, a, b)
        w.define(op.result, Expr(text, prec, host=w.module.hosts.enums, names=names))
        return
    dtype = dtype_of(op.operands[0].type)
    if a.host and b.host:
        result = scalars.binary(w, op.kind, a, b, dtype)
        if result is not None:
            w.define(op.result, result)
            return
        a = as_tensor(w, a, dtype)
    hint = _HINTS.get(op.kind, op.kind)
    w.define(op.result, _tensor_binary(w, op, w.number(a, dtype), w.number(b, dtype)), hint=hint)


def _tensor_binary(w: Writer, op: Op, a: Expr, b: Expr) -> Expr:
    dtype = dtype_of(op.operands[0].type)
    own = w.binary(op, a, b, dtype)
    if own is not None:
        return own
    text, prec, _ = operator(op.kind, a, b)
    made = combined(text, a, b, prec)
    return w.masked(made, dtype) if op.kind in ("add", "sub", "mul", "shl") else made


# --- select ---------------------------------------------------------------------------------------


def emit_select(w: Writer, op: Op) -> None:
    condition, a, b = map(w.get, op.operands)
    type_ = op.result.type
    if condition.host and condition.const is not None:
        w.define(op.result, a if condition.const else b)
        return
    numbers = a.host and b.host
    if isinstance(type_, TensorType) and not (condition.host and (numbers or w.module.hosts.eager)):
        dtype = dtype_of(type_)
        a = w.number(as_tensor(w, a, dtype) if numbers else a, dtype)
        b = w.number(b, dtype)
        rank, unit = aligned((condition, a, b))
        text = f"{w.words.function('where')}({condition.text}, {a.text}, {b.text})"
        made = Expr(text, rank=rank, unit=unit, names=joined((condition, a, b)))
        w.define(op.result, made, hint="chosen")
        return
    if isinstance(type_, TensorType) and not numbers:
        a, b = w.whole(a, type_), w.whole(b, type_)
    w.define(op.result, chosen(condition, a, b), hint="chosen")


def chosen(condition: Expr, a: Expr, b: Expr) -> Expr:
    """`a if condition else b`."""
    text = f"{a.at(TERNARY + 1)} if {condition.at(TERNARY + 1)} else {b.at(TERNARY)}"
    return Expr(
        text, TERNARY, host=a.host and b.host, bounds=_hull(a, b), rank=a.rank,
        names=joined((condition, a, b)), alias=a.alias | b.alias,
    )  # fmt: skip


def _hull(a: Expr, b: Expr) -> tuple[int, int] | None:
    if a.bounds is None or b.bounds is None:
        return None
    return min(a.bounds[0], b.bounds[0]), max(a.bounds[1], b.bounds[1])
