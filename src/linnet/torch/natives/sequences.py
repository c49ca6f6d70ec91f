"""Recurrent layers and mixtures of experts."""

from __future__ import annotations

from linnet.ir import Op
from linnet.torch.emit.expr import Expr
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.model import (
    Case,
    KernelWriter,
    Native,
    Predicate,
    made,
    number_text,
    operands_of,
)
from linnet.types import DType


def _kernel(function: str, scale_at: int | None = None) -> KernelWriter:
    def emit(w: Writer, op: Op) -> Expr:
        exprs = operands_of(w, op)
        texts = [e.text for e in exprs]
        if scale_at is not None:
            texts[scale_at] = number_text(w, op.operands[scale_at], exprs[scale_at])
        return made(op, f"{w.module.helper(function)}({', '.join(texts)})", exprs)

    return emit


def _narrow(name: str, axes: tuple[int, ...]) -> Predicate:
    def when(case: Case) -> str | None:
        if case.dtype(name) is DType.F64:
            return "the body computes in f32"
        if any(case.extent(name, axis) == 0 for axis in axes):
            return "an axis is empty"
        return None

    return when


_R, _M = "std.nn.recurrent::", "std.nn.moe::"
_GROUPED = "grouped by expert, each chosen expert's weight read once"
NATIVES: tuple[Native, ...] = (
    Native(f"{_R}causal_conv", "causal_conv", "a grouped convolution", _kernel("causal_conv"),
           _narrow("x", (2,))),
    Native(f"{_R}gated_delta_rule", "delta_rule", "by chunks of 64 tokens",
           _kernel("delta_rule", 6), _narrow("k", (2, 3))),
    Native(f"{_R}gated_delta_step", "delta_step", "matrix products by head",
           _kernel("delta_step", 6), _narrow("k", (1, 2))),
    Native(f"{_M}linear_experts", "linear_experts", _GROUPED, _kernel("linear_experts"),
           _narrow("x", ())),
    Native(f"{_M}linear_experts_shared", "linear_experts_shared", _GROUPED,
           _kernel("linear_experts_shared"), _narrow("x", ())),
    Native(f"{_M}combine_experts", "combine_experts", _GROUPED, _kernel("combine_experts"),
           _narrow("x", ())),
)  # fmt: skip
