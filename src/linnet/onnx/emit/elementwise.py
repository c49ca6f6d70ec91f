"""Constants, arithmetic, comparisons and selection."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from linnet.backends import folding
from linnet.backends.limits import limit_of
from linnet.dims import Dim
from linnet.onnx.emit import views
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.division import divide
from linnet.onnx.emit.dtypes import HALF, carrier
from linnet.onnx.emit.errors import ExportError
from linnet.onnx.emit.finish import SAME
from linnet.onnx.emit.held import Held
from linnet.onnx.limits import LIMITS
from linnet.types import DType

Dims = tuple[Dim, ...]

UNARY = frozenset("neg not abs exp log sqrt rsqrt sin cos tanh erf floor".split())
BINARY = frozenset("add sub mul div rem min max and or xor shl shr".split())
COMPARE = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
_FUNCTIONS = {"exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
              "tanh": "Tanh", "erf": "Erf", "floor": "Floor"}  # fmt: skip


# --- constants ------------------------------------------------------------------------------------


def size(c: Core, dim: Dim, dtype: DType) -> Held:
    """A compile-time integer as a scalar."""
    if dim.constant is not None:
        return Held.number(folding.convert(dim.constant, dtype), dtype)
    with c.b.outermost():
        value = c.convert(c.sizes.scalar(dim), DType.I64, dtype)
    return Held.whole(value, dtype, ())


def iota(c: Core, count: Dim, dtype: DType) -> Held:
    if count.constant is not None:
        numbers = np.arange(count.constant)
        return Held.whole(c.b.constant(numbers, dtype, f"iota_{dtype}_{count}"), dtype, (count,))
    with c.b.outermost():
        ends = [c.scalar(0, DType.I64), c.sizes.scalar(count), c.scalar(1, DType.I64)]
        made = c.b.once("Range", ends, DType.I64)
        value = c.convert(made, DType.I64, dtype)
    return Held.whole(value, dtype, (count,))


# --- one operand ----------------------------------------------------------------------------------


def unary(c: Core, kind: str, a: Held, hint: str) -> Held:
    if a.const is not None:
        known = folding.unary(kind, a.const, a.dtype)
        if known is not None:
            return Held.number(known, a.dtype, a.dims)
    if kind == "not":
        return c.like(c.b.node("Not", [c.value(a)], DType.BOOL, hint), DType.BOOL, a.dims, (a,))
    if kind == "neg":
        return _negated(c, a, hint)
    if kind == "abs":
        if a.dtype.cls == "unsigned":
            return a
        return c.apply("Abs", "arithmetic", (a,), a.dims, hint=hint)
    if kind == "rsqrt":
        return _rsqrt(c, a, hint)
    if kind == "erf" and a.dtype is DType.F64:
        limit = limit_of(LIMITS, kind, a.dtype)
        raise ExportError(f"{limit.what}: {limit.reason}; {limit.help}")
    return c.apply(_FUNCTIONS[kind], "arithmetic", (a,), a.dims, hint=hint)


def _negated(c: Core, a: Held, hint: str) -> Held:
    if a.dtype.is_float or a.dtype in (DType.I32, DType.I64):
        return c.apply("Neg", "arithmetic", (a,), a.dims, hint=hint)
    wide = c.b.node("Neg", [c.convert(c.value(a), a.dtype, DType.I64)], DType.I64, hint)
    return c.like(c.convert(wide, DType.I64, a.dtype), a.dtype, a.dims, (a,))


def _rsqrt(c: Core, a: Held, hint: str) -> Held:
    """`1 / sqrt(x)` rounded once: through f64 when exactness is asked for."""
    kernel = DType.F64 if c.exact or a.dtype is DType.F64 else DType.F32
    root = c.b.node("Sqrt", [c.in_dtype(a, kernel)], kernel, f"{hint or 'rsqrt'}/root")
    made = c.b.node("Div", [c.scalar(1, kernel), root], kernel, hint)
    return c.like(c.convert(made, kernel, a.dtype), a.dtype, a.dims, (a,))


# --- two operands ---------------------------------------------------------------------------------


def binary(c: Core, kind: str, a: Held, b: Held, hint: str) -> Held:
    dims = a.dims
    if a.const is not None and b.const is not None:
        known = folding.binary(kind, a.const, b.const, a.dtype)
        if known is not None:
            dtype = DType.BOOL if kind in COMPARE or kind in ("eq", "ne") else a.dtype
            return Held.number(known, dtype, dims)
    if kind in COMPARE or kind in ("eq", "ne"):
        return compare(c, kind, a, b, hint)
    if kind in ("and", "or", "xor"):
        return _bits(c, kind, a, b, hint)
    if kind in ("shl", "shr"):
        return _shift(c, kind, a, b, hint)
    if kind in ("min", "max"):
        name = "Min" if kind == "min" else "Max"
        return c.apply(name, "extreme", (a, b), dims, hint=hint)
    if kind in ("div", "rem"):
        return divide(c, kind, a, b, hint)
    (a, b), shape = views.together(c, (a, b))
    made = c.apply({"add": "Add", "sub": "Sub", "mul": "Mul"}[kind], "arithmetic", (a, b), shape,
                   hint=hint)  # fmt: skip
    if a.is_whole and b.is_whole and made.value is not None:
        node = made.value.producer()
        assert node is not None
        node.meta[SAME] = True
    return views.reshape(c, made, dims) if made.dims != dims else made


def compare(c: Core, kind: str, a: Held, b: Held, hint: str) -> Held:
    if kind not in ("eq", "ne"):
        return c.apply(COMPARE[kind], "compare", (a, b), a.dims, DType.BOOL, hint)
    same = c.apply("Equal", "compare", (a, b), a.dims, DType.BOOL, hint)
    if kind == "eq":
        return same
    return c.like(c.b.node("Not", [c.value(same)], DType.BOOL, hint), DType.BOOL, a.dims, (a, b))


def _bits(c: Core, kind: str, a: Held, b: Held, hint: str) -> Held:
    word = {"and": "And", "or": "Or", "xor": "Xor"}[kind]
    name = word if a.dtype is DType.BOOL else f"Bitwise{word}"
    made = c.b.node(name, [c.value(a), c.value(b)], a.dtype, hint)
    return c.like(made, a.dtype, a.dims, (a, b))


_UNSIGNED = {8: DType.U8, 16: DType.U16, 32: DType.U32, 64: DType.U64}


def _shift(c: Core, kind: str, a: Held, b: Held, hint: str) -> Held:
    """Shifts act on unsigned words; counts outside the width shift everything out."""
    dtype, bits = a.dtype, a.dtype.bits
    word = _UNSIGNED[bits]
    signed = dtype.cls == "signed"
    count, inside = _count(c, b, bits, word, saturate=signed and kind == "shr", hint=hint)
    x = c.value(a)
    sign: ir.Value | None = None
    if signed and kind == "shr":  # the complement of a negative word has zeros on top
        below = c.b.node("Less", [x, c.scalar(0, dtype)], DType.BOOL, hint)
        sign = _signs(c, below, dtype, hint)
        x = c.b.node("BitwiseXor", [x, sign], dtype, hint)
    x = c.convert(x, dtype, word)
    direction = "LEFT" if kind == "shl" else "RIGHT"
    made = c.b.node("BitShift", [x, count], word, hint, direction=direction)
    if inside is not None:
        zero = c.scalar(0, word)
        made = c.where(inside, made, zero, word)
    made = c.convert(made, word, dtype)
    if sign is not None:
        made = c.b.node("BitwiseXor", [made, sign], dtype, hint)
    return c.like(made, dtype, a.dims, (a, b))


def _signs(c: Core, below: ir.Value, dtype: DType, hint: str) -> ir.Value:
    """-1 where `below`, else 0."""
    ones = c.b.node("Neg", [c.convert(below, DType.BOOL, DType.I64)], DType.I64, hint)
    return c.convert(ones, DType.I64, dtype)


def _count(
    c: Core, b: Held, bits: int, word: DType, saturate: bool, hint: str
) -> tuple[ir.Value, ir.Value | None]:
    """The shift count as an unsigned word, and where it is inside the width (None: everywhere)."""
    if b.const is not None:
        inside = 0 <= int(b.const) < bits
        if inside:
            return c.scalar(int(b.const), word), None
        if saturate:
            return c.scalar(bits - 1, word), None
        return c.scalar(0, word), c.scalar(False, DType.BOOL)
    value = c.convert(c.value(b), b.dtype, word)  # below 0 is past the width then
    within = c.b.node("Less", [value, c.scalar(bits, word)], DType.BOOL, hint)
    other = c.scalar(bits - 1 if saturate else 0, word)
    return c.where(within, value, other, word), None if saturate else within


# --- selection ------------------------------------------------------------------------------------


def select(c: Core, condition: Held, a: Held, b: Held, hint: str) -> Held:
    dims, dtype = condition.dims, a.dtype
    if condition.const is not None:
        return (a if condition.const else b).reshaped(dims)
    helds = (condition, a, b)
    if dtype is DType.BOOL:
        picked = _select_bool(c, condition, a, b, hint)
        return c.like(picked, dtype, dims, helds)
    kernel = carrier("where", dtype)
    inputs = [c.value(condition), c.in_dtype(a, kernel), c.in_dtype(b, kernel)]
    made = c.convert(c.b.node("Where", inputs, kernel, hint), kernel, dtype)
    return c.like(made, dtype, dims, helds)


def _select_bool(c: Core, condition: Held, a: Held, b: Held, hint: str) -> ir.Value:
    test = c.value(condition)
    other = c.b.once("Not", [test], DType.BOOL)
    left = c.b.node("And", [test, c.value(a)], DType.BOOL, hint)
    right = c.b.node("And", [other, c.value(b)], DType.BOOL, hint)
    return c.b.node("Or", [left, right], DType.BOOL, hint)


# --- casts ----------------------------------------------------------------------------------------


def cast(c: Core, a: Held, target: DType) -> Held:
    source = a.dtype
    if source is target:
        return a
    if a.const is not None:
        return Held.number(folding.convert(a.const, target), target, a.dims)
    value = c.value(a)
    if source.is_float and target.is_integer:
        made = _to_integer(c, a, target)
    elif (source in HALF and target in HALF) or (source in HALF and target is DType.BOOL):
        made = c.convert(c.convert(value, source, DType.F32), DType.F32, target)
    elif source.is_integer and target in HALF:
        made = c.convert(c.convert(value, source, DType.F64), DType.F64, target)
    else:
        made = c.convert(value, source, target)
    return c.like(made, target, a.dims, (a,))


def _to_integer(c: Core, a: Held, target: DType) -> ir.Value:
    """Truncates; what lies outside becomes the nearest value, NaN 0."""
    low, high = target.integer_range
    x = c.in_dtype(a, DType.F64)
    x = c.where(c.b.node("IsNaN", [x], DType.BOOL), c.scalar(0.0, DType.F64), x, DType.F64)
    top = float(high) if target.bits < 64 else math.nextafter(float(high), 0.0)
    clipped = c.b.node("Max", [x, c.scalar(float(low), DType.F64)], DType.F64)
    clipped = c.b.node("Min", [clipped, c.scalar(top, DType.F64)], DType.F64)
    made = c.convert(clipped, DType.F64, target)
    if target.bits < 64:
        return made
    past = c.b.node("GreaterOrEqual", [x, c.scalar(float(high), DType.F64)], DType.BOOL)
    return c.where(past, c.scalar(high, target), made, target)
