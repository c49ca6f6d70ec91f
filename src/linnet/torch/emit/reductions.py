"""Reductions and contractions in PyTorch's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from linnet.backends.emit.dtypes import dtype_of
from linnet.backends.emit.reductions import Contraction, axes_text
from linnet.backends.expr import ATOM, Expr, joined
from linnet.ir import Op
from linnet.torch.emit.dtypes import carried
from linnet.types import DType

if TYPE_CHECKING:
    from linnet.torch.emit.writer import Writer

_METHODS = {"min": "amin", "max": "amax"}


def reduced(w: Writer, a: Expr, kind: str, axes: Sequence[int], dtype: DType) -> str:
    """The text of a reduction; integers stay of their dtype."""
    if dtype is DType.U64 and kind in ("min", "max"):
        return f"{w.module.helper(f'u64_reduce_{kind}')}({a.text}, {axes_text(axes)})"
    if kind == "prod":
        text, extra = a.at(ATOM), "" if dtype.is_float else f", dtype={carried(dtype)}"
        for axis in axes:  # from the left, so that those still to come keep their numbers
            text = f"{text}.prod({axis}{extra})"
        return text
    narrow = kind == "sum" and dtype.is_integer and carried(dtype) != "torch.int64"
    extra = f", dtype={carried(dtype)}" if narrow else ""
    return f"{a.at(ATOM)}.{_METHODS.get(kind, kind)}({axes_text(axes)}{extra})"


def emit_contract(w: Writer, op: Op) -> None:
    a, b = w.tensor(op.operands[0]), w.tensor(op.operands[1])
    how, dtype = Contraction.of(op), dtype_of(op.result.type)
    half = dtype in (DType.F16, DType.BF16) and w.module.options.numerics == "exact"
    # `einsum` sums a label of one operand alone beforehand, and integers into i64.
    if half or (dtype.is_integer and (how.one_sided or w.module.on_device)):
        made = _by_products(w, a, b, how)
    else:
        made = how.product(w, a, b)
    made = replace(made, rank=len(how.output), names=joined((a, b)))
    w.define(op.result, w.masked(made, dtype), hint="product")


def _by_products(w: Writer, a: Expr, b: Expr, how: Contraction) -> Expr:
    """Each product by itself: rounded where it has to be, or of integers, whose matrix products
    GPUs don't have."""
    labels = f"{list(how.left)}, {list(how.right)}, {list(how.output)}"
    return Expr(f"{w.module.helper('contract')}({a.text}, {b.text}, {labels})")
