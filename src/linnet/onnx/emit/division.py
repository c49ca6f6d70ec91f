"""Quotients and remainders."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from linnet.onnx.emit.core import Core
from linnet.onnx.emit.dtypes import ONNX
from linnet.onnx.emit.held import Held
from linnet.types import DType


def divide(c: Core, kind: str, a: Held, b: Held, hint: str) -> Held:
    if a.dtype.is_float:
        if kind == "div":
            return c.apply("Div", "arithmetic", (a, b), a.dims, hint=hint)
        return c.apply("Mod", "arithmetic", (a, b), a.dims, hint=hint, fmod=1)
    if a.dtype is DType.U64:
        x, y = c.value(a), _divisor(c, b, DType.U64)
        quotient = c.b.node("Div", [x, y], DType.U64, hint)
        if kind == "div":
            return c.like(quotient, a.dtype, a.dims, (a, b))
        back = c.b.node("Mul", [quotient, y], DType.U64, hint)
        return c.like(c.b.node("Sub", [x, back], DType.U64, hint), a.dtype, a.dims, (a, b))
    kernel = DType.I32 if a.dtype is DType.I32 else DType.I64
    x, y = c.in_dtype(a, kernel), _divisor(c, b, kernel)
    quotient = _quotient(c, x, y, kernel, b, hint)
    if kind == "rem":
        back = c.b.node("Mul", [quotient, y], kernel, hint)
        quotient = c.b.node("Sub", [x, back], kernel, hint)
    return c.like(c.convert(quotient, kernel, a.dtype), a.dtype, a.dims, (a, b))


def _quotient(c: Core, x: ir.Value, y: ir.Value, kernel: DType, b: Held, hint: str) -> ir.Value:
    """`x / y` truncating; the smallest integer by -1 wraps instead of trapping."""
    narrow = b.dtype.bits < kernel.bits or b.dtype.cls == "unsigned"
    if narrow or (b.const is not None and b.const not in (0, -1)):
        return c.b.node("Div", [x, y], kernel, hint)
    by_minus_one = c.b.node("Equal", [y, c.scalar(-1, kernel)], DType.BOOL, hint)
    safe = c.b.node("Where", [by_minus_one, c.scalar(1, kernel), y], kernel, hint)
    plain = c.b.node("Div", [x, safe], kernel, hint)
    return c.b.node("Where", [by_minus_one, c.b.node("Neg", [x], kernel, hint), plain], kernel,
                    hint)  # fmt: skip


def _divisor(c: Core, b: Held, kernel: DType) -> ir.Value:
    """The divisor; where it is the same at every call and may have a 0, what a loop of one turn
    gives. ONNX Runtime works out what is made of constants when it opens a graph, loops left out,
    and refuses a graph with a constant 0 below a fraction bar, in a branch never taken too."""
    value = c.in_dtype(b, kernel)
    if not _may_be_folded_to_zero(c, value):
        return value
    names = [c.b.fresh(f"divisor/{n}") for n in ("turn", "going", "sofar")]
    turn, going, sofar = (
        ir.Value(name=name, type=ir.TensorType(ONNX[dtype]), shape=shape)
        for name, dtype, shape in zip(names, (DType.I64, DType.BOOL, kernel),
                                      (ir.Shape(()), ir.Shape(()), value.shape), strict=True)
    )  # fmt: skip
    with c.b.inner() as scope:
        results = [
            c.b.node("Identity", [going], DType.BOOL, "going"),
            c.b.node("Identity", [sofar], kernel, "sofar"),
        ]
    results[0].shape, results[1].shape = going.shape, sofar.shape
    body = ir.Graph([turn, going, sofar], results, nodes=scope.nodes, name="body")
    return c.b.node("Loop", [c.scalar(1, DType.I64), None, value], kernel, "divisor", body=body)


def _may_be_folded_to_zero(c: Core, value: ir.Value) -> bool:
    """Whether the value is made of constants and parameters alone, and not seen to have no 0."""
    if value.const_value is not None:
        return not np.all(value.const_value.numpy())
    seen, stack = {id(value)}, [value]
    while stack:
        value = stack.pop()
        node = value.producer()
        if _has_graph(node) if node is not None else id(value) not in c.b.fixed:
            return False
        for taken in () if node is None else node.inputs:
            if taken is not None and id(taken) not in seen:
                seen.add(id(taken))
                stack.append(taken)
    return True


def _has_graph(node: ir.Node) -> bool:
    return any(attr.type is ir.AttributeType.GRAPH for attr in node.attributes.values())
