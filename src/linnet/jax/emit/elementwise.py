"""Arithmetic, comparisons, casts and `select`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from linnet.backends import folding
from linnet.backends.expr import (
    ADD,
    AND,
    ATOM,
    COMPARE,
    LAND,
    LOR,
    MUL,
    NOT,
    OR,
    SHIFT,
    TERNARY,
    UNARY,
    XOR,
    Expr,
    aligned,
    fits,
    integer,
    joined,
    number,
)
from linnet.ir import Op
from linnet.jax.emit.dtypes import dtype_of, spelled, tensor
from linnet.jax.emit.writer import Writer, dim_bounds
from linnet.types import DType, EnumType, TensorType, scalar

_FUNCTIONS = {"exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor"}
_OPERATORS = {
    "add": ("+", ADD), "sub": ("-", ADD), "mul": ("*", MUL), "div": ("/", MUL),
    "and": ("&", AND), "or": ("|", OR), "xor": ("^", XOR), "shl": ("<<", SHIFT),
    "shr": (">>", SHIFT), "eq": ("==", COMPARE), "ne": ("!=", COMPARE), "lt": ("<", COMPARE),
    "le": ("<=", COMPARE), "gt": (">", COMPARE), "ge": (">=", COMPARE),
}  # fmt: skip
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
BINARY = frozenset((*_OPERATORS, "rem", "min", "max"))
UNARY_KINDS = frozenset((*_FUNCTIONS, "neg", "not", "abs"))


def operator(kind: str, a: Expr, b: Expr) -> tuple[str, int, frozenset[str]]:
    """`a <kind> b` with the parentheses it needs."""
    sign, prec = _OPERATORS[kind]
    left = prec + 1 if prec == COMPARE else prec
    return f"{a.at(left)} {sign} {b.at(prec + 1)}", prec, joined((a, b))


# --- constants ------------------------------------------------------------------------------------


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
        w.define(op.result, wrapped(w, host, dtype))


def emit_iota(w: Writer, op: Op) -> None:
    type_ = tensor(op.result.type)
    size = w.size(type_.dims[0])
    text = f"jnp.arange({size.text}, dtype={spelled(dtype_of(type_))})"
    w.define(op.result, Expr(text, rank=1, names=size.names), hint="positions")


def as_tensor(w: Writer, expr: Expr, dtype: DType) -> Expr:
    """A host number as an array of rank 0."""
    return w.filled(expr, scalar(dtype)) if expr.host else expr


def wrapped(w: Writer, expr: Expr, dtype: DType) -> Expr:
    """A host integer brought back into the range of `dtype` where it may have left it."""
    if dtype is DType.BOOL or fits(expr.bounds, dtype):
        return expr
    low, high = dtype.integer_range
    span = 1 << dtype.bits
    if low == 0:
        return integer(f"{expr.at(MUL)} % {span}", MUL, (low, high), expr.names)
    text = f"({expr.at(ADD)} + {-low}) % {span} - {-low}"
    return integer(text, ADD, (low, high), expr.names)


# --- one operand ----------------------------------------------------------------------------------


def emit_unary(w: Writer, op: Op) -> None:
    a, dtype = w.get(op.operands[0]), dtype_of(op.operands[0].type)
    if a.host:
        result = _host_unary(w, op, a, dtype)
        if result is not None:
            w.define(op.result, result)
            return
        a = as_tensor(w, a, dtype)
    w.define(op.result, _tensor_unary(w, op.kind, a, dtype), hint=op.kind)


def _host_unary(w: Writer, op: Op, a: Expr, dtype: DType) -> Expr | None:
    if a.const is not None:
        value = folding.unary(op.kind, a.const, dtype)
        if value is not None:
            return number(value)
    if op.kind == "not":
        return Expr(f"not {a.at(NOT)}", NOT, host=True, names=a.names)
    if dtype.is_float or a.bounds is None:
        return None
    low, high = a.bounds
    if op.kind == "neg":
        return wrapped(w, integer(f"-{a.at(UNARY)}", UNARY, (-high, -low), a.names), dtype)
    most = max(abs(low), abs(high))
    return wrapped(w, integer(f"abs({a.text})", ATOM, (0, most), a.names), dtype)


def _tensor_unary(w: Writer, kind: str, a: Expr, dtype: DType) -> Expr:
    if kind in _FUNCTIONS:
        home = "lax" if kind in ("rsqrt", "erf") else "jnp"
        return replace(a, text=f"{home}.{kind}({a.text})", prec=ATOM)
    if kind == "not":
        return replace(a, text=f"~{a.at(UNARY)}", prec=UNARY)
    if kind == "abs":
        return a if dtype.cls == "unsigned" else replace(a, text=f"jnp.abs({a.text})", prec=ATOM)
    return replace(a, text=f"-{a.at(UNARY)}", prec=UNARY)


# --- casts ----------------------------------------------------------------------------------------


def emit_cast(w: Writer, op: Op) -> None:
    a = w.get(op.operands[0])
    source, target = dtype_of(op.operands[0].type), dtype_of(op.result.type)
    if a.host:
        result = _host_cast(w, a, source, target)
        if result is not None:
            w.define(op.result, result)
            return
        a = as_tensor(w, a, source)
    w.define(op.result, tensor_cast(w, a, source, target), hint=str(target))


def _host_cast(w: Writer, a: Expr, source: DType, target: DType) -> Expr | None:
    if a.const is not None:
        value = folding.convert(a.const, target)
        if value is not None:
            return number(value)
    if source is target:
        return a
    if target.is_float or source.is_float:
        return None
    if target is DType.BOOL:
        return Expr(f"{a.at(COMPARE + 1)} != 0", COMPARE, host=True, names=a.names)
    if source is DType.BOOL:
        return integer(f"int({a.text})", ATOM, (0, 1), a.names)
    return wrapped(w, a, target)


def tensor_cast(w: Writer, a: Expr, source: DType, target: DType) -> Expr:
    if source is target:
        return a
    if source.is_float and target.is_integer and target is not DType.BOOL:
        name = w.module.helper("to_integer")
        return replace(a, text=f"{name}({a.text}, {spelled(target)})", prec=ATOM)
    return replace(a, text=f"{a.at(ATOM)}.astype({spelled(target)})", prec=ATOM)


# --- two operands ---------------------------------------------------------------------------------


def emit_binary(w: Writer, op: Op) -> None:
    a, b = w.get(op.operands[0]), w.get(op.operands[1])
    if isinstance(op.operands[0].type, EnumType):
        text, prec, names = operator(op.kind, a, b)
        w.define(op.result, Expr(text, prec, names=names))
        return
    dtype = dtype_of(op.operands[0].type)
    if a.host and b.host:
        result = _host_binary(w, op, a, b, dtype)
        if result is not None:
            w.define(op.result, result)
            return
        a = as_tensor(w, a, dtype)
    w.define(op.result, _tensor_binary(w, op, a, b, dtype), hint=_hint(op.kind))


def _hint(kind: str) -> str:
    return {"add": "total", "sub": "difference", "mul": "product", "div": "quotient"}.get(
        kind, "flags" if kind in _COMPARISONS else kind
    )


def _host_binary(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if a.const is not None and b.const is not None:
        value = folding.binary(op.kind, a.const, b.const, dtype)
        if value is not None:
            return number(value)
    if op.kind in _COMPARISONS:
        text, prec, names = operator(op.kind, a, b)
        return Expr(text, prec, host=True, names=names)
    names = joined((a, b))
    if dtype is DType.BOOL:
        if op.kind == "and":
            return Expr(f"{a.at(LAND)} and {b.at(LAND + 1)}", LAND, host=True, names=names)
        if op.kind == "or":
            return Expr(f"{a.at(LOR)} or {b.at(LOR + 1)}", LOR, host=True, names=names)
        return Expr(f"{a.at(COMPARE + 1)} != {b.at(COMPARE + 1)}", COMPARE, host=True, names=names)
    if dtype.is_float or a.bounds is None or b.bounds is None:
        return None
    return wrapped(w, _integers(w, op.kind, a, b, dtype), dtype)


def _integers(w: Writer, kind: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    (al, ah), (bl, bh) = a.bounds or (0, 0), b.bounds or (0, 0)
    names = joined((a, b))
    full = dtype.integer_range
    match kind:
        case "add" | "sub" | "mul":
            text, prec, _ = operator(kind, a, b)
            ends = {"add": [al + bl, ah + bh], "sub": [al - bh, ah - bl],
                    "mul": [al * bl, al * bh, ah * bl, ah * bh]}[kind]  # fmt: skip
            return integer(text, prec, (min(ends), max(ends)), names)
        case "min" | "max":
            pick = min if kind == "min" else max
            return integer(f"{kind}({a.text}, {b.text})", ATOM, (pick(al, bl), pick(ah, bh)), names)
        case "div" | "rem" if al >= 0 and bl > 0:
            sign = "//" if kind == "div" else "%"
            bounds = (al // bh, ah // bl) if kind == "div" else (0, min(ah, bh - 1))
            return integer(f"{a.at(MUL)} {sign} {b.at(MUL + 1)}", MUL, bounds, names)
        case "div" | "rem":
            name = w.module.helper("host_divide" if kind == "div" else "host_remainder")
            most = max(abs(al), abs(ah))
            return integer(f"{name}({a.text}, {b.text})", ATOM, (-most, most), names)
        case "shl" | "shr":
            name = w.module.helper("host_shift_left" if kind == "shl" else "host_shift_right")
            most = max(abs(al), abs(ah))
            bounds = (-most, most) if kind == "shr" else (-(most << 64), most << 64)
            width = f", {dtype.bits}"
            return integer(f"{name}({a.text}, {b.text}{width})", ATOM, bounds, names)
        case _:
            text, prec, _ = operator(kind, a, b)
            return integer(text, prec, full, names)


def _tensor_binary(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr:
    a, b = w.number(a, dtype), w.number(b, dtype)
    special = _SPECIAL.get(op.kind)
    if special is not None:
        made = special(w, op, a, b, dtype)
        if made is not None:
            return made
    text, prec, names = operator(op.kind, a, b)
    rank, unit = aligned((a, b))
    return Expr(text, prec, rank=rank, unit=unit, names=names)


def _function(text: str, a: Expr, b: Expr) -> Expr:
    rank, unit = aligned((a, b))
    return Expr(text, rank=rank, unit=unit, names=joined((a, b)))


def _divide(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if not dtype.is_float:
        return _integers_divided(w, "int_divide", a, b, dtype)
    whole = tensor(op.result.type)
    spread = any(not b.has(p) for p in range(1, len(whole.dims) + 1))
    if w.module.exact and whole.dims and spread:  # XLA multiplies by a reciprocal otherwise
        return _function(f"{w.module.helper('divide')}({a.text}, {b.text})", a, b)
    return None


def _integers_divided(w: Writer, kernel: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    a, b = as_tensor(w, a, dtype), as_tensor(w, b, dtype)
    return _function(f"{w.module.helper(kernel)}({a.text}, {b.text})", a, b)


def _remainder(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if not dtype.is_float:
        return _integers_divided(w, "int_remainder", a, b, dtype)
    return _function(f"jnp.fmod({a.text}, {b.text})", a, b)


def _extreme(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    word = "minimum" if op.kind == "min" else "maximum"
    return _function(f"jnp.{word}({a.text}, {b.text})", a, b)


def _shift(w: Writer, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    if b.host and b.const is not None and 0 <= b.const < dtype.bits and not a.host:
        return None
    a, b = as_tensor(w, a, dtype), as_tensor(w, b, dtype)
    word = "left" if op.kind == "shl" else "right"
    return _function(f"{w.module.helper(f'shift_{word}')}({a.text}, {b.text})", a, b)


_SPECIAL: dict[str, Callable[[Writer, Op, Expr, Expr, DType], Expr | None]] = {
    "div": _divide, "rem": _remainder, "min": _extreme, "max": _extreme, "shl": _shift,
    "shr": _shift,
}  # fmt: skip


# --- select ---------------------------------------------------------------------------------------


def emit_select(w: Writer, op: Op) -> None:
    condition, a, b = map(w.get, op.operands)
    type_ = op.result.type
    names = joined((condition, a, b))
    if condition.host and condition.const is not None:
        w.define(op.result, a if condition.const else b)
        return
    if not isinstance(type_, TensorType) or (condition.host and a.host and b.host):
        text = f"{a.at(TERNARY + 1)} if {condition.at(TERNARY + 1)} else {b.at(TERNARY)}"
        host = a.host and b.host
        made = Expr(text, TERNARY, host=host, bounds=_hull(a, b), names=names)
        w.define(op.result, made, hint="chosen")
        return
    dtype = dtype_of(type_)
    if a.host and b.host:
        a = as_tensor(w, a, dtype)
    a, b = w.number(a, dtype), w.number(b, dtype)
    rank, unit = aligned((condition, a, b))
    text = f"jnp.where({condition.text}, {a.text}, {b.text})"
    w.define(op.result, Expr(text, rank=rank, unit=unit, names=names), hint="chosen")


def _hull(a: Expr, b: Expr) -> tuple[int, int] | None:
    if a.bounds is None or b.bounds is None:
        return None
    return min(a.bounds[0], b.bounds[0]), max(a.bounds[1], b.bounds[1])
