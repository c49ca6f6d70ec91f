"""What the code of natives is written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.backends.natives import Case, Predicate
from linnet.dims import Dim
from linnet.ir import Op, Value
from linnet.native.emit.dtypes import dtype_of
from linnet.native.emit.elementwise import combine
from linnet.native.emit.values import Buffer, Term
from linnet.native.emit.writer import Writer
from linnet.types import DType, OptionalType

KernelWriter = Callable[[Writer, Op], None]

# The dtypes that the kernel library has.
KERNEL_DTYPES = (DType.F32, DType.BF16)


def kernel_dtype(*names: str) -> Predicate:
    """Applies where these operands are f32 or bf16."""

    def when(case: Case) -> str | None:
        for name in names:
            if name in case.operands and case.dtype(name) not in KERNEL_DTYPES:
                return f"`{name}` is {case.dtype(name)}"
        return None

    return when


def settled(name: str) -> Predicate:
    """Applies where optional operand `name` is known to be there or not."""

    def when(case: Case) -> str | None:
        value = case.operands.get(name)
        if value is not None and isinstance(value.type, OptionalType):
            return f"whether there is a {name} is known only when it runs"
        return None

    return when


def all_of(*parts: Predicate) -> Predicate:
    """Applies where all of these do."""

    def when(case: Case) -> str | None:
        return next((reason for part in parts if (reason := part(case)) is not None), None)

    return when


def rows(w: Writer, dims: Sequence[Dim]) -> str:
    """How many rows a tensor of these dims has, the last axis being a row."""
    return w.count(dims[:-1])


def result_buffer(w: Writer, op: Op) -> Buffer:
    """Memory for a kernel's result, which the library writes."""
    w.module.uses_kernels = True
    return w.result(op.result)


def number(w: Writer, value: Value) -> str:
    """A scalar operand."""
    return w.scalar(value).text


def elementwise(function: str, cost: int) -> KernelWriter:
    """A function of one element that is worked out in f32 and rounded once."""

    def emit(w: Writer, op: Op) -> None:
        part = w.tensor(op.operands[0])
        dtype = dtype_of(op.operands[0].type)

        def one(terms: Sequence[Term]) -> Term:
            text = f"{function}({terms[0].text})"
            return Term(text if dtype is DType.F32 else f"to_{dtype}({text})")

        combine(w, op, [part], cost, one)

    return emit


__all__ = [
    "KERNEL_DTYPES", "KernelWriter", "all_of", "elementwise", "kernel_dtype", "number",
    "result_buffer", "rows", "settled",
]  # fmt: skip
