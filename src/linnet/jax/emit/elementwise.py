"""Casts and arithmetic that JAX does otherwise than Linnet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linnet.backends.emit.dtypes import tensor
from linnet.backends.emit.elementwise import as_tensor, combined
from linnet.backends.emit.scalars import operator
from linnet.backends.expr import ATOM, Expr
from linnet.ir import Op
from linnet.jax.emit.dtypes import spelled
from linnet.types import DType

if TYPE_CHECKING:
    from linnet.jax.emit.writer import Writer


def cast(w: Writer, a: Expr, source: DType, target: DType) -> Expr:
    if source.is_float and target.is_integer and target is not DType.BOOL:
        name = w.module.helper("to_integer")
        return replace(a, text=f"{name}({a.text}, {spelled(target)})", prec=ATOM)
    return replace(a, text=f"{a.at(ATOM)}.astype({spelled(target)})", prec=ATOM)


def binary(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    """The operation where it is not Python's operator alone."""
    match op.kind:
        case "mul":
            return _multiply(w, op, a, b)
        case "div" if not dtype.is_float:
            return _called(w, "int_divide", a, b, dtype)
        case "div":
            return _divide(w, op, a, b)
        case "rem" if not dtype.is_float:
            return _called(w, "int_remainder", a, b, dtype)
        case "rem":
            return combined(f"jnp.fmod({a.text}, {b.text})", a, b)
        case "min" | "max":
            word = "minimum" if op.kind == "min" else "maximum"
            return combined(f"jnp.{word}({a.text}, {b.text})", a, b)
        case "shl" | "shr":
            return _shift(w, op, a, b, dtype)
        case _:
            return None


def _called(w: Writer, kernel: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    """A kernel on two arrays."""
    a, b = as_tensor(w, a, dtype), as_tensor(w, b, dtype)
    return combined(f"{w.module.helper(kernel)}({a.text}, {b.text})", a, b)


def _multiply(w: Writer, op: Op, a: Expr, b: Expr) -> Expr | None:
    """A product that is rounded before anything is added to it, where that has to be said."""
    if not w.meets_sum(op.result):
        return None
    text, _, _ = operator(op.kind, a, b)
    return combined(f"{w.module.helper('rounded')}({text})", a, b)


def _divide(w: Writer, op: Op, a: Expr, b: Expr) -> Expr | None:
    whole = tensor(op.result.type)
    spread = any(not b.has(p) for p in range(1, len(whole.dims) + 1))
    if w.module.exact and whole.dims and spread:  # XLA multiplies by a reciprocal otherwise
        return combined(f"{w.module.helper('divide')}({a.text}, {b.text})", a, b)
    return None


def _shift(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if b.host and b.const is not None and 0 <= b.const < dtype.bits and not a.host:
        return None
    return _called(w, "shift_left" if op.kind == "shl" else "shift_right", a, b, dtype)
