"""Attention: dense, by rows, and over pages."""

from __future__ import annotations

from linnet.backends import predicates as known
from linnet.backends.expr import ADD, Expr
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.jax.natives.model import (
    KernelWriter,
    Native,
    calling,
    made,
    number_text,
    operands_of,
)

_A = "std.nn.attention::"
_NOTE = "two products and a softmax in f32, heads not repeated"


def _upto(function: str) -> KernelWriter:
    """A kernel whose last argument is the bound and the offset together."""

    def emit(w: Writer, op: Op) -> Expr:
        exprs = operands_of(w, op)
        texts = [number_text(e) for e in exprs]
        shift = op.attrs["offset"]
        if len(exprs) == 4:
            texts.append(str(shift))
        elif shift:
            sign = "+" if shift > 0 else "-"
            texts[4] = f"{exprs[4].at(ADD)} {sign} {abs(shift)}"
        return made(op, f"{w.module.helper(function)}({', '.join(texts)})", exprs)

    return emit


def _paged(function: str) -> KernelWriter:
    def emit(w: Writer, op: Op) -> Expr:
        return calling(function, str(op.attrs["size"]))(w, op)

    return emit


def _family(op: str) -> tuple[Native, ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "attention_causal", f"{_NOTE}, causal", calling("attend_causal"),
               known.when_mask(known.is_causal, "the mask is not known to be causal"),
               known.without_mask),
        Native(path, "attention_from", f"{_NOTE}, over the keys up to a prompt's own",
               _upto("attend_from"),
               known.when_mask(known.starts, "no start of the prompt is known"),
               known.with_bound, known.offset),
        Native(path, "attention_upto", f"{_NOTE}, over the keys up to a position",
               _upto("attend_upto"), known.when_mask(known.ends, "no last key is known"),
               known.with_bound, known.offset),
        Native(path, "attention_each_upto", f"{_NOTE}, over the keys up to the last one seen",
               _upto("attend_each_upto"),
               known.when_mask(known.each_ends, "no last key a query is known"),
               known.with_bound, known.offset),
        Native(path, "attention", f"{_NOTE}, under the mask as it is", calling("attend"),
               known.dense),
    )  # fmt: skip


def _row_family(op: str) -> tuple[Native, ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "attention_rows_upto", f"{_NOTE}, over each row's real length",
               _upto("attend_rows_upto"),
               known.when_mask(known.rows_end, "no row's length is known"),
               known.with_bound, known.offset),
        Native(path, "attention_rows", f"{_NOTE}, under the masks as they are",
               calling("attend_rows"), known.heads),
    )  # fmt: skip


NATIVES: tuple[Native, ...] = (
    *_family("attention"),
    *_family("grouped_attention"),
    *_row_family("attention_rows"),
    *_row_family("grouped_attention_rows"),
    Native(f"{_A}paged_attention", "paged_attention",
           "each row over its own pages, those past the longest row's not read",
           _paged("attend_paged"), known.page_size_known, attrs=known.page_size),
    Native(f"{_A}paged_prefill_attention", "paged_prefill_attention",
           "each row's pages read once", _paged("attend_paged_prompts"), known.page_size_known,
           attrs=known.page_size),
    Native(f"{_A}sink_attention", "sink_attention", "two matrix products and a softmax",
           calling("attend_with_sinks"), known.heads),
)  # fmt: skip
