"""Losses and log-probabilities over a vocabulary."""

from __future__ import annotations

from linnet.backends.expr import UNARY, Expr
from linnet.backends.predicates import filled, one_shard, vocabulary
from linnet.ir import Op
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.basics import function
from linnet.torch.natives.model import (
    KernelWriter,
    Native,
    calling,
    made,
    operands_of,
)


def _log_probs(w: Writer, op: Op) -> Expr:
    return calling(w, op, "log_probs")


def _linear_log_probs(w: Writer, op: Op) -> Expr:
    return calling(w, op, "linear_log_probs")


def _weighted(name: str, count: int) -> KernelWriter:
    def emit(w: Writer, op: Op) -> Expr:
        exprs = operands_of(w, op)
        inner = ", ".join(e.text for e in exprs[:count])
        text = f"-({exprs[-1].at(13)} * {w.module.helper(name)}({inner})).sum()"
        return made(op, text, exprs, UNARY)

    return emit


_L = "std.nn.loss::"
_NOTE = "by blocks of rows, the whole logits never held"
NATIVES: tuple[Native, ...] = (
    Native(f"{_L}token_log_probs", "log_probs", "one pass, in f32", _log_probs,
           vocabulary("logits", 1)),
    Native(f"{_L}cross_entropy", "cross_entropy", "one pass, in f32", _weighted("log_probs", 2),
           vocabulary("logits", 1)),
    Native(f"{_L}linear_token_log_probs", "linear_log_probs", _NOTE, _linear_log_probs,
           vocabulary("hidden", 0)),
    Native(f"{_L}linear_cross_entropy", "linear_cross_entropy", _NOTE,
           _weighted("linear_log_probs", 3), vocabulary("hidden", 0)),
    Native(f"{_L}split_token_log_probs", "linear_log_probs", _NOTE, _linear_log_probs, one_shard),
    Native(f"{_L}split_cross_entropy", "linear_cross_entropy", _NOTE,
           _weighted("linear_log_probs", 3), one_shard),
    Native(f"{_L}log_softmax", "log_softmax", "one pass, in f32",
           function("F.log_softmax", ", -1, dtype=torch.float32"), filled("x", -1)),
)  # fmt: skip
