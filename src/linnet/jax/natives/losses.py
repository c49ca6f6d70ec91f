"""Losses over a vocabulary whose logits are made from hidden states."""

from __future__ import annotations

from linnet.backends.expr import UNARY, Expr
from linnet.backends.predicates import one_shard, vocabulary
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.jax.natives.model import Native, calling, made, operands_of


def _weighted(w: Writer, op: Op) -> Expr:
    exprs = operands_of(w, op)
    inner = ", ".join(e.text for e in exprs[:3])
    text = f"-({exprs[3].at(13)} * {w.module.helper('linear_log_probs')}({inner})).sum()"
    return made(op, text, exprs, UNARY)


_L = "std.nn.loss::"
_NOTE = "by blocks of rows, the whole logits never held"
_SCORES = calling("linear_log_probs")
_KNOWN = vocabulary("hidden", 0)
NATIVES: tuple[Native, ...] = (
    Native(f"{_L}linear_token_log_probs", "linear_log_probs", _NOTE, _SCORES, _KNOWN),
    Native(f"{_L}linear_cross_entropy", "linear_cross_entropy", _NOTE, _weighted, _KNOWN),
    Native(f"{_L}split_token_log_probs", "linear_log_probs", _NOTE, _SCORES, one_shard),
    Native(f"{_L}split_cross_entropy", "linear_cross_entropy", _NOTE, _weighted, one_shard),
)
