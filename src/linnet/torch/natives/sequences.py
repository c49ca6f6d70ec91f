"""Recurrent layers and mixtures of experts."""

from __future__ import annotations

from linnet.backends.expr import Expr
from linnet.backends.predicates import count_taken, counted, narrow
from linnet.ir import Op
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.model import (
    Case,
    KernelWriter,
    Native,
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


def _top_k(w: Writer, op: Op) -> Expr:
    exprs = operands_of(w, op)
    return made(op, f"{w.module.helper('top_k')}({exprs[0].text}, {op.attrs['count']})", exprs)


def _rounded(case: Case) -> str | None:
    """Products rounded before they are summed, as the framework's own layers do."""
    if case.numerics == "equivalent" and case.dtype("x") is not DType.F32:
        return "the body rounds the sum alone"
    return narrow("x")(case)


_R, _M = "std.nn.recurrent::", "std.nn.moe::"
_GROUPED = "grouped by expert, each chosen expert's weight read once"
NATIVES: tuple[Native, ...] = (
    Native(f"{_R}causal_conv", "causal_conv", "a grouped convolution", _kernel("causal_conv"),
           narrow("x", 2)),
    Native(f"{_R}gated_delta_rule", "delta_rule", "by chunks of 64 tokens",
           _kernel("delta_rule", 6), narrow("k", 2, 3)),
    Native(f"{_R}gated_delta_step", "delta_step", "matrix products by head",
           _kernel("delta_step", 6), narrow("k", 1, 2)),
    Native(f"{_R}causal_conv_packed", "causal_conv_packed", "a grouped convolution a sequence",
           _kernel("causal_conv_packed"), narrow("x", 1)),
    Native(f"{_R}gated_delta_rule_packed", "delta_rule_packed", "by chunks of 64 tokens a sequence",
           _kernel("delta_rule_packed", 8), narrow("k", 1, 2)),
    Native(f"{_M}linear_experts", "linear_experts", _GROUPED, _kernel("linear_experts"),
           narrow("x")),
    Native(f"{_M}linear_experts_shared", "linear_experts_shared", _GROUPED,
           _kernel("linear_experts_shared"), narrow("x")),
    Native(f"{_M}combine_experts", "combine_experts", _GROUPED, _kernel("combine_experts"),
           _rounded),
    Native(f"{_M}combine_experts", "combine_experts_wide", f"{_GROUPED}, in f32",
           _kernel("combine_experts_wide"), narrow("x")),
    Native(f"{_M}top_k", "top_k", "torch.topk on keys that no two places share", _top_k, counted,
           attrs=lambda case: {"count": count_taken(case)}),
)  # fmt: skip
