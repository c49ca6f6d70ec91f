"""Recurrent layers and mixtures of experts."""

from __future__ import annotations

from linnet.backends.expr import Expr
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.jax.natives.model import Case, Native, Predicate, calling
from linnet.types import DType, TensorType


def _top_k(w: Writer, op: Op) -> Expr:
    return calling("top_places", str(op.attrs["count"]))(w, op)


def _count(case: Case) -> int | None:
    """How many `top_k` takes, where that is a number."""
    result = case.query.call.results[0].type
    return result.dims[-1].constant if isinstance(result, TensorType) else None


def _counted(case: Case) -> str | None:
    if case.dtype("x") not in (DType.F32, DType.BF16, DType.F16):
        return "the body compares in f64"
    return "how many are taken is known only when it runs" if _count(case) is None else None


def _narrow(name: str, *axes: int) -> Predicate:
    def when(case: Case) -> str | None:
        if case.dtype(name) is DType.F64:
            return "the body computes in f32"
        if any(case.extent(name, axis) == 0 for axis in axes):
            return "an axis is empty"
        return None

    return when


def _serving(case: Case) -> str | None:
    return "a gradient needs a loop of known length" if case.trainable else _narrow("k", 1, 2)(case)


_R, _M = "std.nn.recurrent::", "std.nn.moe::"
_GROUPED = "the chosen experts alone: a few one by one, many sorted by expert"
NATIVES: tuple[Native, ...] = (
    Native(f"{_R}causal_conv", "causal_conv", "a sum of shifted inputs", calling("causal_conv"),
           _narrow("x", 2)),
    Native(f"{_R}gated_delta_rule", "delta_rule", "by chunks of 64 tokens", calling("delta_rule"),
           _narrow("k", 2, 3)),
    Native(f"{_R}gated_delta_step", "delta_step", "the state read once", calling("delta_step"),
           _narrow("k", 1, 2)),
    Native(f"{_R}gated_delta_rule_packed", "delta_rule_packed",
           "by chunks of 64 tokens of one sequence", calling("delta_rule_packed"), _serving),
    Native(f"{_R}gated_delta_rule_packed", "delta_rule_runs",
           "by chunks of 64 tokens, other sequences masked", calling("delta_rule_runs"),
           _narrow("k", 1, 2)),
    Native(f"{_M}linear_experts", "linear_experts", _GROUPED, calling("linear_experts"),
           _narrow("x")),
    Native(f"{_M}linear_experts_shared", "linear_experts_shared", _GROUPED,
           calling("linear_experts_shared"), _narrow("x")),
    Native(f"{_M}combine_experts", "combine_experts", _GROUPED, calling("combine_experts"),
           _narrow("x")),
    Native(f"{_M}top_k", "top_k", "`lax.top_k`", _top_k, _counted,
           attrs=lambda case: {"count": _count(case)}),
)  # fmt: skip
