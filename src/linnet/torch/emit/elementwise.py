"""Casts and arithmetic that PyTorch does otherwise than Linnet, or lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from linnet.backends.emit.dtypes import dtype_of
from linnet.backends.emit.elementwise import as_tensor, combined
from linnet.backends.emit.scalars import operator
from linnet.backends.expr import AND, ATOM, XOR, Expr, number
from linnet.backends.folding import rounded
from linnet.ir import Op
from linnet.torch.emit.dtypes import WIDE, carried, wrap_mask
from linnet.types import DType

if TYPE_CHECKING:
    from linnet.torch.emit.writer import Writer


def masked(expr: Expr, dtype: DType) -> Expr:
    """A carried `u16` or `u32` result brought back into range."""
    mask = wrap_mask(dtype)
    if mask is None:
        return expr
    return replace(expr, text=f"{expr.at(AND)} & {mask:#x}", prec=AND)


# --- numbers --------------------------------------------------------------------------------------


def emit_const(w: Writer, op: Op) -> None:
    """PyTorch takes a number into 16-bit arithmetic as `f32`, not as the tensor's dtype: `exact`
    gives it rounded."""
    value, dtype = op.attrs["value"], dtype_of(op.result.type)
    half = dtype in (DType.F16, DType.BF16) and w.module.options.numerics == "exact"
    w.define(op.result, number(rounded(float(value), dtype) if half else value))


# --- casts ----------------------------------------------------------------------------------------


def cast(w: Writer, a: Expr, source: DType, target: DType) -> Expr:
    fresh = replace(a, alias=frozenset()) if carried(source) != carried(target) else a
    special = _special_cast(w, a, source, target)
    if special is not None:
        return replace(fresh, text=special, prec=ATOM)
    if carried(source) != carried(target):
        fresh = replace(fresh, text=f"{a.at(ATOM)}.to({carried(target)})", prec=ATOM)
    widening = source.is_integer and source.cls == "unsigned" and source.bits <= target.bits
    if target in WIDE and source is not DType.BOOL and not widening:
        return masked(replace(fresh, alias=frozenset()), target)
    return fresh


def _special_cast(w: Writer, a: Expr, source: DType, target: DType) -> str | None:
    """The casts that PyTorch does otherwise: unsigned words, floats beyond an integer's range, and
    what it would round twice."""
    kind = carried(target)
    if source is DType.U64 and target.is_float:
        return f"{w.module.helper('u64_to_float')}({a.text}, {kind})"
    if target is DType.U64 and source.is_float:
        return f"{w.module.helper('float_to_u64')}({a.text})"
    if source.is_float and target.is_integer:
        low, high = target.integer_range
        if target is DType.I64:
            return f"{w.module.helper('float_to_i64')}({a.text})"
        return f"{w.module.helper('float_to_integer')}({a.text}, {low}, {high}, {kind})"
    long = source is DType.F64 or (source.is_integer and source.bits > 16)
    if long and target in (DType.F16, DType.BF16):
        return f"{w.module.helper('rounded_once')}({a.text}, {kind})"
    return None


# --- two operands ---------------------------------------------------------------------------------


def binary(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    """The operation where it is not Python's operator alone."""
    special = _SPECIAL.get(op.kind)
    return None if special is None else special(w, op, a, b, dtype)


def _compare(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if dtype is not DType.U64:
        return None
    a, b = _flipped(a), _flipped(b)
    text, prec, _ = operator(op.kind, a, b)
    return combined(text, a, b, prec)


def _flipped(a: Expr) -> Expr:
    """`u64` bits whose signed order is the unsigned order of `a`."""
    if a.const is not None:
        return replace(a, text=f"({int(a.const) - 2**63})", prec=ATOM)
    return replace(a, text=f"{a.at(XOR)} ^ {-(2**63)}", prec=XOR)


def _divide(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if not dtype.is_float:
        return _divide_integers(w, op, a, b, dtype)
    if a.host and a.const == 1:
        return combined(f"torch.reciprocal({b.text})", a, b)
    if a.host:  # a number over a tensor is a reciprocal and a product, two roundings
        a = as_tensor(w, a, dtype)
    elif b.host and w.module.device_scalars:  # CUDA multiplies by the reciprocal of a number
        b = as_tensor(w, b, dtype)
    else:
        return None
    text, prec, _ = operator("div", a, b)
    return combined(text, a, b, prec)


def _divide_integers(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr:
    rem = op.kind == "rem"
    if dtype is DType.U64:
        return _called(w, "u64_remainder" if rem else "u64_divide", a, b, dtype)
    unsigned = dtype.cls == "unsigned"  # none of whose numbers is -1
    if unsigned:
        a, b = as_tensor(w, a, dtype), as_tensor(w, b, dtype)
    if unsigned or (b.host and b.const not in (0, -1, None) and not a.host):
        call = "torch.fmod({a}, {b})" if rem else 'torch.div({a}, {b}, rounding_mode="trunc")'
        return combined(call.format(a=a.text, b=b.text), a, b)
    return _called(w, "int_remainder" if rem else "int_divide", a, b, dtype)


def _called(w: Writer, kernel: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    """A kernel on two tensors."""
    a, b = as_tensor(w, a, dtype), as_tensor(w, b, dtype)
    return combined(f"{w.module.helper(kernel)}({a.text}, {b.text})", a, b)


def _remainder(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if not dtype.is_float:
        return _divide_integers(w, op, a, b, dtype)
    a = as_tensor(w, a, dtype)
    return combined(f"torch.fmod({a.text}, {b.text})", a, b)


def _extreme(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if dtype is DType.U64:
        return _called(w, f"u64_{op.kind}", a, b, dtype)
    if a.host:
        a, b = b, a
    if b.host and b.const is not None and b.const == b.const:
        side = "max" if op.kind == "min" else "min"
        return combined(f"{a.at(ATOM)}.clamp({side}={b.text})", a, b)
    word = "minimum" if op.kind == "min" else "maximum"
    return combined(f"torch.{word}({a.text}, {as_tensor(w, b, dtype).text})", a, b)


def _shift(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if dtype is DType.U64 and op.kind == "shr":
        return _called(w, "u64_shift_right", a, b, dtype)
    if b.host and b.const is not None and 0 <= b.const < dtype.bits and not a.host:
        return None
    word = "left" if op.kind == "shl" else "right"
    a, b = as_tensor(w, a, dtype), as_tensor(w, b, dtype)
    return masked(combined(f"torch.bitwise_{word}_shift({a.text}, {b.text})", a, b), dtype)


_SPECIAL: dict[str, Callable[[Writer, Op, Expr, Expr, DType], Expr | None]] = {
    "div": _divide, "rem": _remainder, "min": _extreme, "max": _extreme, "shl": _shift,
    "shr": _shift, **dict.fromkeys(("lt", "le", "gt", "ge"), _compare),
}  # fmt: skip
