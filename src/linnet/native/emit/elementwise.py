"""Constants and elementwise operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.backends.folding import Number
from linnet.backends.hosts import fold
from linnet.diagnostics import InternalError
from linnet.ir import Op
from linnet.native.emit.dtypes import HALF, dtype_of, held, literal
from linnet.native.emit.nest import Nest
from linnet.native.emit.values import (
    Buffer,
    Lazy,
    Scalar,
    Tensor,
    Term,
    cost_of,
    depth_of,
    fails_of,
    roots_of,
)
from linnet.native.emit.writer import Writer
from linnet.types import DType, EnumType, TensorType

KERNEL_DTYPES = (DType.F32, DType.BF16)  # that the kernel library has
FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor")
UNARY = ("neg", "not", "abs", *FUNCTIONS)
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
BINARY = ("add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr",
          *COMPARE)  # fmt: skip
_COST = {**dict.fromkeys(FUNCTIONS, 16), "sqrt": 6, "rsqrt": 8, "floor": 1, "div": 4, "rem": 6}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "div": "divide", "rem": "rest",
            "min": "minimum", "max": "maximum", "shl": "shift_left",
            "shr": "shift_right"}  # fmt: skip
_BITS = {"and": "&", "or": "|", "xor": "^"}


# --- one element ----------------------------------------------------------------------------------


def rounded(dtype: DType, text: str) -> Term:
    """A float expression rounded to a 16-bit dtype, as it is for others."""
    if dtype in HALF:
        return Term(f"to_{dtype}({text})")
    return Term(text, atomic=False)


def unary_term(kind: str, dtype: DType, x: Term, fast: bool) -> Term:
    if kind == "not":
        return Term(f"!{x.operand}")
    if kind == "neg":
        if dtype.is_float:
            return Term(f"-{x.operand}", atomic=False)
        return Term(f"neg<{held(dtype)}>({x.text})")
    if kind == "abs":
        return Term(f"absolute<{held(dtype)}>({x.text})")
    if kind == "floor" or (kind == "sqrt" and dtype in (DType.F32, DType.F64)):
        return Term(f"std::{kind}({x.text})")
    name = "exact_rsqrt" if kind == "rsqrt" else f"std::{kind}"
    if dtype is DType.F64:
        return Term(f"{name}({x.text})")
    if fast:
        return _fast_term(kind, dtype, x)
    text = f"{name}(static_cast<double>({x.text}))"
    return Term(f"to_{dtype}({text})" if dtype in HALF else f"static_cast<float>({text})")


def _fast_term(kind: str, dtype: DType, x: Term) -> Term:
    if kind == "rsqrt":
        return rounded(dtype, f"1.0f / std::sqrt({x.text})")
    text = f"std::{kind}({x.text})"
    return Term(f"to_{dtype}({text})" if dtype in HALF else text)


def binary_term(kind: str, dtype: DType, a: Term, b: Term, where: str) -> Term:
    if kind in COMPARE:
        return Term(f"{a.operand} {COMPARE[kind]} {b.operand}", atomic=False)
    if kind in _BITS:
        text = f"{a.operand} {_BITS[kind]} {b.operand}"
        if dtype.is_integer and dtype.bits < 32:
            return Term(f"static_cast<{held(dtype)}>({text})")
        return Term(text, atomic=False)
    if not dtype.is_float:
        extra = f", {where}" if kind in ("div", "rem") else ""
        return Term(f"{_INTEGER[kind]}<{held(dtype)}>({a.text}, {b.text}{extra})")
    if kind in ("min", "max"):
        return Term(f"{_INTEGER[kind]}<{held(dtype)}>({a.text}, {b.text})")
    if kind == "rem":
        text = f"std::fmod({a.text}, {b.text})"
        return Term(f"to_{dtype}({text})" if dtype in HALF else text)
    return rounded(dtype, f"{a.operand} {_SIGNS[kind]} {b.operand}")


def cast_term(source: DType, target: DType, x: Term) -> Term:
    if source is target:
        return x
    kind = held(target)
    if target is DType.BOOL:
        return Term(f"{x.operand} != 0", atomic=False)
    if source.is_float and target.is_integer:
        return Term(f"to_integer<{kind}>({x.text})")
    if target in HALF:
        if source.is_float:
            return Term(f"to_{target}({x.text})")
        if source.bits == 64:
            return Term(f"to_{target}(odd_double({x.text}))")
        return Term(f"to_{target}(static_cast<double>({x.text}))")
    if target.is_float:
        if held(source) == kind:
            return x
        return Term(f"static_cast<{kind}>({x.text})")
    if source is DType.BOOL:
        return Term(f"static_cast<{kind}>({x.text})")
    return Term(f"wrapped<{kind}>({x.text})")


# --- operations -----------------------------------------------------------------------------------


def combine(
    w: Writer, op: Op, parts: Sequence[Tensor], cost: int,
    make: Callable[[Sequence[Term]], Term], fails: bool = False,
) -> None:  # fmt: skip
    """Defines an elementwise result from its operands' elements."""
    type_ = op.result.type
    dtype = dtype_of(type_)
    dims = type_.dims if isinstance(type_, TensorType) else ()
    if not dims and not fails and all(isinstance(p, Scalar) for p in parts):
        term = make([p.term for p in parts if isinstance(p, Scalar)])
        w.define(op.result, Scalar(term.text, dtype, atomic=term.atomic))
        return

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        terms = [nest.element(p, index if not isinstance(p, Scalar) else ()) for p in parts]
        level = max((t.level for t in terms), default=0)
        made = make(terms)
        if fails:
            return nest.failing(held(dtype), made.text, level, op.result.name or "value")
        return Term(made.text, level, made.atomic)

    added: tuple[Buffer, Buffer] | None = None
    if op.kind == "add" and w.module.fast and dtype in KERNEL_DTYPES and len(dims) > 0:
        whole = [p for p in parts if isinstance(p, Buffer) and p.dims == dims]
        added = (whole[0], whole[1]) if len(whole) == 2 else None
    total = cost + sum(map(cost_of, parts))
    roots = frozenset().union(*map(roots_of, parts))
    w.define(op.result, Lazy(
        dtype, dims, element, total, 1 + max(map(depth_of, parts), default=0), roots,
        fails or any(map(fails_of, parts)), op.result.name, added=added,
    ))  # fmt: skip


def _folded(w: Writer, op: Op, parts: Sequence[Tensor]) -> bool:
    """Whether all operands are known numbers, and the result so too."""
    known: list[Number] = []
    for part in parts:
        if not isinstance(part, Scalar) or part.const is None:
            return False
        known.append(part.const)
    if isinstance(op.operands[0].type, EnumType):
        return False
    value = fold(op, known)
    if value is None:
        return False
    dtype = dtype_of(op.result.type)
    w.define(op.result, constant(value, dtype))
    return True


def constant(value: int | float | bool, dtype: DType) -> Scalar:
    text = literal(value, dtype)
    return Scalar(text, dtype, value, not text.startswith("-"))


def emit_const(w: Writer, op: Op) -> None:
    w.define(op.result, constant(op.attrs["value"], dtype_of(op.result.type)))


def emit_dim(w: Writer, op: Op) -> None:
    dtype, size = dtype_of(op.result.type), w.size(op.attrs["dim"])
    if size.constant is not None and (
        dtype.is_float or dtype.integer_range[0] <= size.constant <= dtype.integer_range[1]
    ):
        value = float(size.constant) if dtype.is_float else size.constant
        w.define(op.result, constant(value, dtype))
        return
    if dtype in HALF:
        w.define(op.result, Scalar(f"to_{dtype}(odd_double<int64_t>({size.text}))", dtype))
        return
    made = Scalar(f"size_as<{held(dtype)}>({size.text}, {w.where})", dtype)
    w.define(op.result, w.variable(made, op.result.name or "size"))


def emit_iota(w: Writer, op: Op) -> None:
    type_ = op.result.type
    assert isinstance(type_, TensorType)
    dtype = dtype_of(type_)

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        (at,) = index
        if at.text == "0":
            return Term(literal(0, dtype), 0)
        if dtype is DType.I64:
            return at
        return Term(f"static_cast<{held(dtype)}>({at.text})", at.level)

    w.define(op.result, Lazy(dtype, type_.dims, element))


def emit_cast(w: Writer, op: Op) -> None:
    part = w.tensor(op.operands[0])
    source, target = dtype_of(op.operands[0].type), dtype_of(op.result.type)
    if _folded(w, op, [part]):
        return
    combine(w, op, [part], int(source is not target),
            lambda terms: cast_term(source, target, terms[0]))  # fmt: skip


def emit_unary(w: Writer, op: Op) -> None:
    part = w.tensor(op.operands[0])
    dtype = dtype_of(op.operands[0].type)
    if _folded(w, op, [part]):
        return
    combine(w, op, [part], _COST.get(op.kind, 1),
            lambda terms: unary_term(op.kind, dtype, terms[0], w.module.fast))  # fmt: skip


def emit_binary(w: Writer, op: Op) -> None:
    parts = [w.tensor(v) for v in op.operands]
    dtype = dtype_of(op.operands[0].type)
    if _folded(w, op, parts):
        return
    where = w.where
    fails = op.kind in ("div", "rem") and dtype.is_integer and not _never_zero(parts[1])
    combine(w, op, parts, _COST.get(op.kind, 1),
            lambda t: binary_term(op.kind, dtype, t[0], t[1], where), fails)  # fmt: skip


def _never_zero(part: Tensor) -> bool:
    return isinstance(part, Scalar) and part.const is not None and part.const != 0


def emit_select(w: Writer, op: Op) -> None:
    parts = [w.tensor(v) for v in op.operands]
    condition = parts[0]
    if isinstance(condition, Scalar) and condition.const is not None:
        w.define(op.result, parts[1 if condition.const else 2])
        return
    combine(w, op, parts, 1, lambda t: Term(
        f"{t[0].operand} ? {t[1].operand} : {t[2].operand}", atomic=False))  # fmt: skip


def only(op: Op) -> None:
    if len(op.results) != 1:
        raise InternalError("native.emit", f"`{op.kind}` has {len(op.results)} results", op.span)
