"""Contractions in JAX's words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linnet.backends.emit.dtypes import dtype_of, tensor
from linnet.backends.emit.reductions import Contraction
from linnet.backends.expr import Expr, joined
from linnet.ir import Op, Value
from linnet.jax.emit.dtypes import HALF
from linnet.types import DType

if TYPE_CHECKING:
    from linnet.jax.emit.writer import Writer


def emit_contract(w: Writer, op: Op) -> None:
    how, dtype = Contraction.of(op), dtype_of(op.result.type)
    narrow = _narrow_operands(w, op)
    a, b = narrow or (w.tensor(op.operands[0]), w.tensor(op.operands[1]))
    if dtype in HALF and w.module.exact:
        made = _by_products(w, a, b, how, dtype)
    elif narrow:
        made = how.einsum(w, a, b, ", preferred_element_type=jnp.float32")
    else:
        made = how.product(w, a, b)
    if not how.summed and w.meets_sum(op.result):
        made = Expr(f"{w.module.helper('rounded')}({made.text})")
    made = replace(made, rank=len(how.output), names=joined((a, b)))
    w.define(op.result, made, hint="product")


def _narrow_operands(w: Writer, op: Op) -> tuple[Expr, Expr] | None:
    """The operands before they were widened to f32, where a product that is summed in f32 can
    take them so: products of f16 and of bf16 are exact in f32."""
    if dtype_of(op.result.type) is not DType.F32 or op.operands[0] is op.operands[1]:
        return None
    makers = [w.makers.get(value.id) for value in op.operands]
    for value, maker in zip(op.operands, makers, strict=True):
        if value.id not in w.pending or maker is None or maker.kind != "cast":
            return None
    sources = [maker.operands[0] for maker in makers if maker is not None]
    kinds = {dtype_of(source.type) for source in sources}
    if len(kinds) != 1 or not kinds <= HALF:
        return None
    for value in op.operands:
        w.get(value)
    a, b = (_whole(w, source) for source in sources)
    return a, b


def _whole(w: Writer, value: Value) -> Expr:
    return w.whole(w.peek(value), tensor(value.type))


def _by_products(w: Writer, a: Expr, b: Expr, how: Contraction, dtype: DType) -> Expr:
    """Each product rounded before it is summed, as the two operations it stands for do."""
    order = [*how.output, *how.summed]
    name = w.module.helper("line_up")
    sides = [
        f"{name}({e.text}, {list(labels)}, {order})"
        for e, labels in ((a, how.left), (b, how.right))
    ]
    product = f"({sides[0]} * {sides[1]})"
    if how.summed:
        if dtype is DType.F16:
            product = f"{w.module.helper('rounded')}{product}"
        dims = ", ".join(str(-1 - i) for i in range(len(how.summed)))
        product += f".sum(({dims},))"
    return Expr(product)
