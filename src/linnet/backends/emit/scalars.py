"""Arithmetic on Python numbers: folded where they are known, kept in the range of their dtype."""

from __future__ import annotations

from linnet.backends import folding
from linnet.backends.emit.writer import Writer
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
    UNARY,
    XOR,
    Expr,
    fits,
    integer,
    joined,
    number,
)
from linnet.types import DType

OPERATORS = {
    "add": ("+", ADD), "sub": ("-", ADD), "mul": ("*", MUL), "div": ("/", MUL),
    "and": ("&", AND), "or": ("|", OR), "xor": ("^", XOR), "shl": ("<<", SHIFT),
    "shr": (">>", SHIFT), "eq": ("==", COMPARE), "ne": ("!=", COMPARE), "lt": ("<", COMPARE),
    "le": ("<=", COMPARE), "gt": (">", COMPARE), "ge": (">=", COMPARE),
}  # fmt: skip
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def operator(kind: str, a: Expr, b: Expr) -> tuple[str, int, frozenset[str]]:
    """`a <kind> b` with the parentheses it needs."""
    sign, prec = OPERATORS[kind]
    left = prec + 1 if prec == COMPARE else prec
    return f"{a.at(left)} {sign} {b.at(prec + 1)}", prec, joined((a, b))


def wrapped(expr: Expr, dtype: DType) -> Expr:
    """A host integer brought back into the range of `dtype` where it may have left it."""
    if dtype is DType.BOOL or fits(expr.bounds, dtype):
        return expr
    low, high = dtype.integer_range
    span = 1 << dtype.bits
    if low == 0:
        return integer(f"{expr.at(MUL)} % {span}", MUL, (low, high), expr.names)
    text = f"({expr.at(ADD)} + {-low}) % {span} - {-low}"
    return integer(text, ADD, (low, high), expr.names)


def unary(kind: str, a: Expr, dtype: DType) -> Expr | None:
    """The operation on a host number, or None where only a tensor has it."""
    if a.const is not None:
        value = folding.unary(kind, a.const, dtype)
        if value is not None:
            return number(value)
    if kind == "not":
        return Expr(f"not {a.at(NOT)}", NOT, host=True, names=a.names)
    if dtype.is_float or a.bounds is None:
        return None
    low, high = a.bounds
    if kind == "neg":
        return wrapped(integer(f"-{a.at(UNARY)}", UNARY, (-high, -low), a.names), dtype)
    most = max(abs(low), abs(high))
    return wrapped(integer(f"abs({a.text})", ATOM, (0, most), a.names), dtype)


def cast(a: Expr, source: DType, target: DType) -> Expr | None:
    """The cast of a host number, or None where only a tensor has it."""
    if a.const is not None:
        return number(folding.convert(a.const, target))
    if source is target:
        return a
    if target.is_float or source.is_float:
        return None
    if target is DType.BOOL:
        return Expr(f"{a.at(COMPARE + 1)} != 0", COMPARE, host=True, names=a.names)
    if source is DType.BOOL:
        return integer(f"int({a.text})", ATOM, (0, 1), a.names)
    return wrapped(a, target)


def binary(w: Writer, kind: str, a: Expr, b: Expr, dtype: DType) -> Expr | None:
    """The operation on two host numbers, or None where only tensors have it."""
    if a.const is not None and b.const is not None:
        value = folding.binary(kind, a.const, b.const, dtype)
        if value is not None:
            return number(value)
    if kind in COMPARISONS:
        text, prec, names = operator(kind, a, b)
        return Expr(text, prec, host=True, names=names)
    if dtype is DType.BOOL:
        return _logical(kind, a, b)
    if dtype.is_float or a.bounds is None or b.bounds is None:
        return None
    return wrapped(_integers(w, kind, a, b, dtype), dtype)


def _logical(kind: str, a: Expr, b: Expr) -> Expr:
    names = joined((a, b))
    if kind == "and":
        return Expr(f"{a.at(LAND)} and {b.at(LAND + 1)}", LAND, host=True, names=names)
    if kind == "or":
        return Expr(f"{a.at(LOR)} or {b.at(LOR + 1)}", LOR, host=True, names=names)
    return Expr(f"{a.at(COMPARE + 1)} != {b.at(COMPARE + 1)}", COMPARE, host=True, names=names)


def _integers(w: Writer, kind: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    """Python's integers with bounds of the result, which may lie outside the dtype."""
    (al, ah), (bl, bh) = a.bounds or (0, 0), b.bounds or (0, 0)
    names = joined((a, b))
    most = max(abs(al), abs(ah))
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
            return integer(f"{name}({a.text}, {b.text})", ATOM, (-most, most), names)
        case "shl" | "shr":
            name = w.module.helper("host_shift_left" if kind == "shl" else "host_shift_right")
            bounds = (-most, most) if kind == "shr" else (-(most << 64), most << 64)
            width = f", {dtype.bits}"
            return integer(f"{name}({a.text}, {b.text}{width})", ATOM, bounds, names)
        case _:
            text, prec, _ = operator(kind, a, b)
            return integer(text, prec, dtype.integer_range, names)
