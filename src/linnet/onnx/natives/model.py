"""What an entry of the table is, and how kernels read their operands."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from linnet.backends.natives import Case, Native, Predicate
from linnet.dims import Dim
from linnet.ir import Op
from linnet.onnx.emit import views
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.trace import Frame, Kernel, Tracer
from linnet.types import DType

# How a table is told what it may use, through the device of a case: `opset 24 microsoft`.
MICROSOFT = "microsoft"


def target(opset: int, runtime_operators: bool) -> str:
    return f"opset {opset}{f' {MICROSOFT}' if runtime_operators else ''}"


def opset_of(case: Case) -> int:
    return int(case.device.split()[1]) if case.device.startswith("opset ") else 0


def needs(opset: int) -> Predicate:
    def when(case: Case) -> str | None:
        return None if opset_of(case) >= opset else f"the operator came with opset {opset}"

    return when


def of_runtime(case: Case) -> str | None:
    """Applies where ONNX Runtime's own operators may be used."""
    return None if MICROSOFT in case.device.split() else "the operator is ONNX Runtime's own"


# --- for kernels ----------------------------------------------------------------------------------


def operands(t: Tracer, frame: Frame, op: Op) -> list[Held]:
    return [frame.values[value] for value in op.operands]


def result_dims(frame: Frame, op: Op) -> tuple[Dim, ...]:
    return frame.dims(op.result.type)


def in_f32(t: Tracer, held: Held) -> ir.Value:
    """The whole tensor in f32, which holds f16 and bf16 exactly."""
    return t.c.convert(t.c.whole(held), held.dtype, DType.F32)


def rounded(t: Tracer, value: ir.Value, dtype: DType, dims: tuple[Dim, ...]) -> Held:
    """An f32 result rounded to `dtype`."""
    return Held.whole(t.c.convert(value, DType.F32, dtype), dtype, dims)


def pointwise(operator: str, **attrs: Any) -> Kernel:
    """An operator on one operand, in f32, the result held as the operand is."""

    def emit(t: Tracer, frame: Frame, op: Op) -> Held:
        return alike(t, frame, op, operator, **attrs)

    return emit


def alike(t: Tracer, frame: Frame, op: Op, operator: str, domain: str = "", **attrs: Any) -> Held:
    """An operator on one operand, in f32, the result held as the operand is."""
    (whole,) = operands(t, frame, op)
    (x,), dims = views.together(t.c, (whole,))
    wide = t.c.in_dtype(x, DType.F32)
    made = t.c.b.node(operator, [wide], DType.F32, op.result.name, domain, **attrs)
    made = t.c.convert(made, DType.F32, x.dtype)
    held = t.c.like(made, x.dtype, dims, (x,))
    return held if dims == whole.dims else views.reshape(t.c, held, whole.dims)


__all__ = [
    "Case", "Kernel", "Native", "Predicate", "alike", "in_f32", "needs", "of_runtime", "operands",
    "opset_of", "pointwise", "result_dims", "rounded", "target",
]  # fmt: skip
