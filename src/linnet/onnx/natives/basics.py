"""Linear layers, norms, activations, softmax and decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from linnet.backends.predicates import every, filled, narrow, never_empty, settled
from linnet.dims import Dim
from linnet.ir import Op
from linnet.onnx.emit import elementwise, views
from linnet.onnx.emit.finish import SAME
from linnet.onnx.emit.graph import MICROSOFT
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.reductions import has_nan
from linnet.onnx.emit.trace import Frame, Tracer
from linnet.onnx.natives.model import (
    Case,
    Kernel,
    Native,
    alike,
    in_f32,
    needs,
    of_runtime,
    operands,
    pointwise,
    result_dims,
    rounded,
)
from linnet.types import DType


def _linear(t: Tracer, frame: Frame, op: Op) -> Held:
    """`Gemm` reads the weight `[out, in]` as it lies and adds the bias."""
    x, weight, bias = operands(t, frame, op)
    c, dims, dtype = t.c, result_dims(frame, op), x.dtype
    flat = c.whole(x)
    rows = Dim.of(1)
    for dim in dims[:-1]:
        rows = rows * dim
    if len(dims) != 2:
        flat = c.reshape(flat, dtype, (rows, x.dims[-1]))
    inputs = [flat, c.whole(weight), c.whole(bias)]
    made = c.b.node("Gemm", inputs, dtype, op.result.name, transB=1)
    if len(dims) != 2:
        made = c.reshape(made, dtype, dims, op.result.name)
    return Held.whole(made, dtype, dims)


def _with_bias(case: Case) -> str | None:
    if "bias" not in case.operands:
        return "without a bias the body is one Gemm"
    if case.dtype("x") not in (DType.F32, DType.F64):
        return "the body rounds between product and bias"
    return None


def _epsilon(t: Tracer, frame: Frame, op: Op) -> float | None:
    held = operands(t, frame, op)[-1]
    return None if held.const is None else float(held.const)


def _rms_norm(t: Tracer, frame: Frame, op: Op) -> Held:
    x, weight, eps = operands(t, frame, op)
    if eps.const is None:
        return _plain_norm(t, x, weight, None, eps, centred=False)
    return _norm(t, op, x, weight, None, float(eps.const), "RMSNormalization")


def _layer_norm(t: Tracer, frame: Frame, op: Op) -> Held:
    x, weight, *bias, eps = operands(t, frame, op)
    shift = bias[0] if bias else None
    if eps.const is None:
        return _plain_norm(t, x, weight, shift, eps, centred=True)
    return _norm(t, op, x, weight, shift, float(eps.const), "LayerNormalization")


def _norm(
    t: Tracer, op: Op, x: Held, weight: Held, bias: Held | None, eps: float, operator: str
) -> Held:
    """In f32; in a narrower dtype the unit row is rounded before it is scaled, as in the body."""
    c, dtype = t.c, x.dtype
    attrs: dict[str, Any] = {"axis": -1, "epsilon": eps, "stash_type": 1}
    if dtype is DType.F32:
        (flat,), dims = views.together(c, (x,))
        flat, dims = (flat, dims) if dims[-1:] == x.dims[-1:] else (x, x.dims)
        inputs = [c.whole(flat), c.whole(weight)] + ([c.whole(bias)] if bias is not None else [])
        made = c.b.node(operator, inputs, dtype, op.result.name, **attrs)
        node = made.producer()
        assert node is not None
        node.meta[SAME] = len(dims) in (2, 3)  # the ranks a sum may be taken in with
        return views.reshape(c, Held.whole(made, dtype, dims), x.dims)
    ones = _ones(t, weight)
    unit = c.b.node(operator, [in_f32(t, x), ones], DType.F32, "unit", **attrs)
    return _scaled(t, rounded(t, unit, dtype, x.dims), weight, bias)


def _ones(t: Tracer, weight: Held) -> ir.Value:
    extent = weight.dims[0].constant
    if extent is not None:
        return t.c.b.constant(np.ones(extent, np.float32), DType.F32)
    return t.c.whole(Held.number(1.0, DType.F32, weight.dims))


def _scaled(t: Tracer, unit: Held, weight: Held, bias: Held | None) -> Held:
    c, last = t.c, (len(unit.dims) - 1,)
    made = elementwise.binary(c, "mul", unit, c.placed(weight, last, unit.dims), "")
    if bias is None:
        return made
    return elementwise.binary(c, "add", made, c.placed(bias, last, unit.dims), "")


def _plain_norm(
    t: Tracer, x: Held, weight: Held, bias: Held | None, eps: Held, *, centred: bool
) -> Held:
    """The body's own operators, for an epsilon that is known only when it runs."""
    c = t.c
    axes = c.b.integers(-1)
    wide = in_f32(t, x)
    if centred:
        mean = c.b.node("ReduceMean", [wide, axes], DType.F32, "mean", keepdims=1)
        wide = c.b.node("Sub", [wide, mean], DType.F32, "centred")
    square = c.b.node("Mul", [wide, wide], DType.F32, "square")
    mean = c.b.node("ReduceMean", [square, axes], DType.F32, "mean_square", keepdims=1)
    moved = c.b.node("Add", [mean, c.value(eps)], DType.F32)
    root = c.b.node("Sqrt", [moved], DType.F32)
    unit = c.b.node("Div", [wide, root], DType.F32, "unit")
    return _scaled(t, rounded(t, unit, x.dtype, x.dims), weight, bias)


def _silu(t: Tracer, frame: Frame, op: Op) -> Held:
    (x,) = operands(t, frame, op)
    c = t.c
    wide = c.in_dtype(x, DType.F32)
    gate = c.b.node("Sigmoid", [wide], DType.F32, "gate")
    made = c.b.node("Mul", [wide, gate], DType.F32, op.result.name)
    return c.like(c.convert(made, DType.F32, x.dtype), x.dtype, x.dims, (x,))


def _quick(t: Tracer, frame: Frame, op: Op) -> Held:
    """`x * sigmoid(x)` in one pass."""
    return alike(t, frame, op, "QuickGelu", MICROSOFT, alpha=1.0)


def _softmax(t: Tracer, frame: Frame, op: Op) -> Held:
    (x,) = operands(t, frame, op)
    made = t.c.b.node("Softmax", [in_f32(t, x)], DType.F32, op.result.name, axis=-1)
    return rounded(t, made, x.dtype, x.dims)


def _argmax(t: Tracer, frame: Frame, op: Op) -> Held:
    """The runtime's own passes NaN over; in rows that have one, it looks for the first of them."""
    (x,) = operands(t, frame, op)
    c, wide, last = t.c, in_f32(t, x), len(x.dims) - 1
    nan = c.convert(c.b.once("IsNaN", [wide], DType.BOOL), DType.BOOL, DType.F32)
    keys = c.where(has_nan(c, wide, [last], "nan", keep=True), nan, wide, DType.F32)
    made = c.b.node("ArgMax", [keys], DType.I64, op.result.name, axis=-1, keepdims=0)
    dims = result_dims(frame, op)
    return Held.whole(c.convert(made, DType.I64, DType.I32), DType.I32, dims)


_F = "std.nn."


def _activation(name: str, kernel: str, emit: Kernel, opset: int = 0) -> Native[Kernel]:
    when = every(needs(opset), narrow("x")) if opset else narrow("x")
    return Native(f"{_F}activations::{name}", kernel, f"{kernel}, in f32", emit, when)


NATIVES: tuple[Native[Kernel], ...] = (
    Native(f"{_F}linear::linear", "Gemm", "one product with its bias", _linear,
           every(settled("bias"), _with_bias)),
    Native(f"{_F}norm::rms_norm", "RMSNormalization", "in f32", _rms_norm,
           every(needs(23), narrow("x"), filled("x", -1))),
    Native(f"{_F}norm::layer_norm", "LayerNormalization", "in f32", _layer_norm,
           every(settled("bias"), narrow("x"), filled("x", -1))),
    _activation("sigmoid", "Sigmoid", pointwise("Sigmoid")),
    Native(f"{_F}activations::silu", "QuickGelu", "one pass, in f32", _quick,
           every(of_runtime, narrow("x"))),
    _activation("silu", "Swish", pointwise("Swish"), 24),
    _activation("silu", "Sigmoid and Mul", _silu),
    _activation("gelu", "Gelu (tanh)", pointwise("Gelu", approximate="tanh")),
    _activation("gelu_erf", "Gelu", pointwise("Gelu", approximate="none")),
    _activation("softplus", "Softplus", pointwise("Softplus")),
    Native(f"{_F}softmax::softmax", "Softmax", "in f32", _softmax,
           every(narrow("x"), filled("x", -1))),
    Native(f"{_F}decoding::argmax", "ArgMax", "the first of equals", _argmax,
           every(narrow("x"), never_empty("x"))),
)  # fmt: skip
