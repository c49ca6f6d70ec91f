"""Attention: dense, by rows, and over pages."""

from __future__ import annotations

from linnet.backends import predicates as known
from linnet.backends.expr import ADD, Expr
from linnet.ir import Op
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.model import KernelWriter, Native, made, number_text, operands_of


def _scaled(w: Writer, op: Op, name: str, at: int, *extra: str) -> Expr:
    """A kernel's call whose operand `at` is a scale."""
    exprs = operands_of(w, op)
    texts = [e.text for e in exprs]
    texts[at] = number_text(w, op.operands[at], exprs[at])
    return made(op, f"{w.module.helper(name)}({', '.join([*texts, *extra])})", exprs)


def _dense(w: Writer, op: Op) -> Expr:
    return _scaled(w, op, "attend" if len(op.operands) == 4 else "attend_masked", 3)


def _causal(w: Writer, op: Op) -> Expr:
    return _scaled(w, op, "attend", 3, "causal=True")


def _rows(w: Writer, op: Op) -> Expr:
    return _scaled(w, op, "attend_masked", 3)


def _paged(w: Writer, op: Op) -> Expr:
    return _scaled(w, op, "attend_paged", 5, str(op.attrs["size"]))


def _paged_prompts(w: Writer, op: Op) -> Expr:
    return _scaled(w, op, "attend_paged_prompts", 6, str(op.attrs["size"]))


def _sinks(w: Writer, op: Op) -> Expr:
    return _scaled(w, op, "attend_with_sinks", 4)


def _upto(function: str) -> KernelWriter:
    """A kernel whose last argument is the bound and the offset together."""

    def emit(w: Writer, op: Op) -> Expr:
        exprs = operands_of(w, op)
        texts = [e.text for e in exprs]
        texts[3] = number_text(w, op.operands[3], exprs[3])
        offset = op.attrs["offset"]
        if len(exprs) == 4:
            texts.append(str(offset))
        else:
            value = op.operands[4]
            if not value.type.shape:  # type: ignore[union-attr]
                texts[4] = number_text(w, value, exprs[4])
            elif exprs[4].prec < ADD:
                texts[4] = f"({texts[4]})"
            if offset:
                texts[4] += f" {'+' if offset > 0 else '-'} {abs(offset)}"
        return made(op, f"{w.module.helper(function)}({', '.join(texts)})", exprs)

    return emit


_A = "std.nn.attention::"
_NOTE = "scaled_dot_product_attention"


def _family(op: str) -> tuple[Native, ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "attention_causal", f"{_NOTE}, causal", _causal,
               known.when_mask(known.is_causal, "the mask is not known to be causal"),
               known.without_mask),
        Native(path, "attention_from", f"{_NOTE} over the keys up to a prompt's own",
               _upto("attend_from"),
               known.when_mask(known.starts, "no start of the prompt is known"),
               known.with_bound, known.offset),
        Native(path, "attention_upto", f"{_NOTE} over the keys up to a position",
               _upto("attend_upto"), known.when_mask(known.ends, "no last key is known"),
               known.with_bound, known.offset),
        Native(path, "attention_each_upto", f"{_NOTE} over the keys up to the last one seen",
               _upto("attend_each_upto"),
               known.when_mask(known.each_ends, "no last key a query is known"),
               known.with_bound, known.offset),
        Native(path, "attention", f"{_NOTE} under the mask as it is", _dense, known.dense),
    )  # fmt: skip


def _row_family(op: str) -> tuple[Native, ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "attention_rows_upto", f"{_NOTE} over each row's real length",
               _upto("attend_rows_upto"),
               known.when_mask(known.rows_end, "no row's length is known"),
               known.with_bound, known.offset),
        Native(path, "attention_rows", f"{_NOTE} under the masks as they are", _rows,
               known.heads),
    )  # fmt: skip


NATIVES: tuple[Native, ...] = (
    *_family("attention"),
    *_family("grouped_attention"),
    *_row_family("attention_rows"),
    *_row_family("grouped_attention_rows"),
    Native(f"{_A}paged_attention", "paged_attention", "each row over its own pages, up to its "
           "position", _paged, known.page_size_known, attrs=known.page_size),
    Native(f"{_A}paged_prefill_attention", "paged_prefill_attention", "each row's pages read once",
           _paged_prompts, known.page_size_known, attrs=known.page_size),
    Native(f"{_A}sink_attention", "sink_attention", "two matrix products and a softmax", _sinks,
           known.heads),
)  # fmt: skip
