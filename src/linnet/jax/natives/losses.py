"""Losses over a vocabulary whose logits are made from hidden states."""

from __future__ import annotations

from linnet.backends.expr import UNARY, Expr
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.jax.natives.model import Case, Native, calling, made, operands_of
from linnet.types import DType


def _weighted(w: Writer, op: Op) -> Expr:
    exprs = operands_of(w, op)
    inner = ", ".join(e.text for e in exprs[:3])
    text = f"-({exprs[3].at(13)} * {w.module.helper('linear_log_probs')}({inner})).sum()"
    return made(op, text, exprs, UNARY)


def _narrow(case: Case) -> str | None:
    if case.dtype("hidden") is DType.F64:
        return "the body computes in f32"
    return "the vocabulary is empty" if case.extent("weight", 0) == 0 else None


def _one_shard(case: Case) -> str | None:
    if case.generic("Shards") != 1:
        return "it is not known to be one shard"
    return _narrow(case)


_L = "std.nn.loss::"
_NOTE = "by blocks of rows, the whole logits never held"
_SCORES = calling("linear_log_probs")
NATIVES: tuple[Native, ...] = (
    Native(f"{_L}linear_token_log_probs", "linear_log_probs", _NOTE, _SCORES, _narrow),
    Native(f"{_L}linear_cross_entropy", "linear_cross_entropy", _NOTE, _weighted, _narrow),
    Native(f"{_L}split_token_log_probs", "linear_log_probs", _NOTE, _SCORES, _one_shard),
    Native(f"{_L}split_cross_entropy", "linear_cross_entropy", _NOTE, _weighted, _one_shard),
)
