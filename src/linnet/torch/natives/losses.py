"""Losses and log-probabilities over a vocabulary."""

from __future__ import annotations

from linnet.backends.expr import UNARY, Expr
from linnet.backends.predicates import last_axis
from linnet.ir import Op
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.basics import function
from linnet.torch.natives.model import (
    Case,
    KernelWriter,
    Native,
    Predicate,
    calling,
    made,
    operands_of,
)
from linnet.types import DType


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


def _narrow(name: str, axis: int) -> Predicate:
    def when(case: Case) -> str | None:
        if case.dtype(name) is DType.F64:
            return "the body computes in f32"
        if case.extent("weight" if "weight" in case.operands else name, axis) == 0:
            return "the vocabulary is empty"
        return None

    return when


def _one_shard(case: Case) -> str | None:
    if case.generic("Shards") != 1:
        return "it is not known to be one shard"
    return _narrow("hidden", 0)(case)


_L = "std.nn.loss::"
_NOTE = "by blocks of rows, the whole logits never held"
NATIVES: tuple[Native, ...] = (
    Native(f"{_L}token_log_probs", "log_probs", "one pass, in f32", _log_probs,
           _narrow("logits", 1)),
    Native(f"{_L}cross_entropy", "cross_entropy", "one pass, in f32", _weighted("log_probs", 2),
           _narrow("logits", 1)),
    Native(f"{_L}linear_token_log_probs", "linear_log_probs", _NOTE, _linear_log_probs,
           _narrow("hidden", 0)),
    Native(f"{_L}linear_cross_entropy", "linear_cross_entropy", _NOTE,
           _weighted("linear_log_probs", 3), _narrow("hidden", 0)),
    Native(f"{_L}split_token_log_probs", "linear_log_probs", _NOTE, _linear_log_probs, _one_shard),
    Native(f"{_L}split_cross_entropy", "linear_cross_entropy", _NOTE,
           _weighted("linear_log_probs", 3), _one_shard),
    Native(f"{_L}log_softmax", "log_softmax", "one pass, in f32",
           function("F.log_softmax", ", -1, dtype=torch.float32"), last_axis("x")),
)  # fmt: skip
