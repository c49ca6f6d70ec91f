"""Recurrent layers and mixtures of experts."""

from __future__ import annotations

from linnet.backends.expr import Expr
from linnet.backends.predicates import count_taken, counted, narrow
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.jax.natives.model import Case, Native, calling


def _top_k(w: Writer, op: Op) -> Expr:
    return calling("top_places", str(op.attrs["count"]))(w, op)


def _serving(case: Case) -> str | None:
    return "a gradient needs a loop of known length" if case.trainable else narrow("k", 1, 2)(case)


_R, _M = "std.nn.recurrent::", "std.nn.moe::"
_GROUPED = "the chosen experts alone: a few one by one, many sorted by expert"
NATIVES: tuple[Native, ...] = (
    Native(f"{_R}causal_conv", "causal_conv", "a sum of shifted inputs", calling("causal_conv"),
           narrow("x", 2)),
    Native(f"{_R}gated_delta_rule", "delta_rule", "by chunks of 64 tokens", calling("delta_rule"),
           narrow("k", 2, 3)),
    Native(f"{_R}gated_delta_step", "delta_step", "the state read once", calling("delta_step"),
           narrow("k", 1, 2)),
    Native(f"{_R}gated_delta_rule_packed", "delta_rule_packed",
           "by chunks of 64 tokens of one sequence", calling("delta_rule_packed"), _serving),
    Native(f"{_R}gated_delta_rule_packed", "delta_rule_runs",
           "by chunks of 64 tokens, other sequences masked", calling("delta_rule_runs"),
           narrow("k", 1, 2)),
    Native(f"{_M}linear_experts", "linear_experts", _GROUPED, calling("linear_experts"),
           narrow("x")),
    Native(f"{_M}linear_experts_shared", "linear_experts_shared", _GROUPED,
           calling("linear_experts_shared"), narrow("x")),
    Native(f"{_M}combine_experts", "combine_experts", _GROUPED, calling("combine_experts"),
           narrow("x")),
    Native(f"{_M}top_k", "top_k", "`lax.top_k`", _top_k, counted,
           attrs=lambda case: {"count": count_taken(case)}),
)  # fmt: skip
