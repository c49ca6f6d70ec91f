"""Attention: dense, by rows, and over pages."""

from __future__ import annotations

from collections.abc import Callable

from linnet.ir import Op, Value
from linnet.passes.masks import AtMost, MaskFact
from linnet.torch.emit.expr import ADD, Expr
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.basics import settled
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


def _kernel_dtype(case: Case) -> str | None:
    if case.dtype("q") is DType.F64:
        return "the body computes in f32"
    if case.extent("k", 2) == 0:
        return "there are no keys"
    if case.extent("q", 3) == 0:
        return "heads have no width"
    return None


def _applies(case: Case) -> str | None:
    return _kernel_dtype(case) or settled("mask")(case)


# --- what is known of the mask -------------------------------------------------------------


def _bounded(case: Case, key: int) -> AtMost | None:
    """The mask as one bound on the key's position with an offset that is a number."""
    fact = case.fact("mask")
    atom = fact.single if isinstance(fact, MaskFact) else None
    if atom is None or atom.key != key or atom.offset.constant is None:
        return None
    return atom


def _is_causal(case: Case) -> bool:
    """Whether query i sees the keys 0 .. i of as many keys as queries."""
    atom = _bounded(case, 1)
    same = case.type("q").dims[2] == case.type("k").dims[2]
    return same and atom is not None and _plain(atom, 0) and atom.offset.constant == 0


def _plain(atom: AtMost, query: int | None) -> bool:
    return atom.query == query and atom.bound is None


def _starts(case: Case) -> bool:
    """Whether query i sees the keys 0 .. start + i, with one start for all."""
    atom = _bounded(case, 1)
    return atom is not None and atom.query == 0 and (atom.bound is None or not atom.bound.axes)


def _ends(case: Case) -> bool:
    """Whether every query sees the keys 0 .. last, with one last for all."""
    atom = _bounded(case, 1)
    return atom is not None and atom.query is None and (atom.bound is None or not atom.bound.axes)


def _each_ends(case: Case) -> bool:
    """Whether query i sees the keys 0 .. last[i]."""
    atom = _bounded(case, 1)
    return (
        atom is not None
        and atom.query is None
        and (atom.bound is not None and atom.bound.axes == (0,))
    )


def _rows_end(case: Case) -> bool:
    """Whether the queries of sequence b see its keys 0 .. last[b]."""
    atom = _bounded(case, 2)
    if atom is None or atom.bound is None or atom.bound.axes != (0,):
        return False
    return atom.query is None or (atom.query == 1 and case.extent("q", 2) == 1)


def _with_bound(case: Case) -> tuple[Value, ...]:
    """Queries, keys, values, scale, and the bound where the fact has one; not the mask."""
    atom = _bounded(case, case.type("mask").shape.__len__() - 1)
    known = tuple(case.operands[n] for n in ("q", "k", "v", "scale"))
    return known if atom is None or atom.bound is None else (*known, atom.bound.value)


def _offset(case: Case) -> dict[str, int]:
    atom = _bounded(case, case.type("mask").shape.__len__() - 1)
    return {"offset": 0 if atom is None else atom.offset.constant or 0}


def _without_mask(case: Case) -> tuple[Value, ...]:
    return tuple(case.operands[n] for n in ("q", "k", "v", "scale"))


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


def _when(known: Callable[[Case], bool], why: str) -> Predicate:
    def when(case: Case) -> str | None:
        if "mask" not in case.operands:
            return "there is no mask"
        return _applies(case) or (None if known(case) else why)

    return when


def _size(case: Case) -> str | None:
    return _kernel_dtype(case) or (
        None if case.generic("Size") is not None else "the page size is known only when it runs"
    )


_A = "std.nn.attention::"
_NOTE = "scaled_dot_product_attention"


def _family(op: str) -> tuple[Native, ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "attention_causal", f"{_NOTE}, causal", _causal,
               _when(_is_causal, "the mask is not known to be causal"), _without_mask),
        Native(path, "attention_from", f"{_NOTE} over the keys up to a prompt's own",
               _upto("attend_from"), _when(_starts, "no start of the prompt is known"),
               _with_bound, _offset),
        Native(path, "attention_upto", f"{_NOTE} over the keys up to a position",
               _upto("attend_upto"), _when(_ends, "no last key is known"), _with_bound, _offset),
        Native(path, "attention_each_upto", f"{_NOTE} over the keys up to the last one seen",
               _upto("attend_each_upto"), _when(_each_ends, "no last key a query is known"),
               _with_bound, _offset),
        Native(path, "attention", f"{_NOTE} under the mask as it is", _dense, _applies),
    )  # fmt: skip


def _row_family(op: str) -> tuple[Native, ...]:
    path = f"{_A}{op}"
    return (
        Native(path, "attention_rows_upto", f"{_NOTE} over each row's real length",
               _upto("attend_rows_upto"), _when(_rows_end, "no row's length is known"),
               _with_bound, _offset),
        Native(path, "attention_rows", f"{_NOTE} under the masks as they are", _rows,
               _kernel_dtype),
    )  # fmt: skip


def _page_size(case: Case) -> dict[str, int]:
    return {"size": case.generic("Size") or 0}


NATIVES: tuple[Native, ...] = (
    *_family("attention"),
    *_family("grouped_attention"),
    *_row_family("attention_rows"),
    *_row_family("grouped_attention_rows"),
    Native(f"{_A}paged_attention", "paged_attention", "each row over its own pages, up to its "
           "position", _paged, _size, attrs=_page_size),
    Native(f"{_A}paged_prefill_attention", "paged_prefill_attention", "each row's pages read once",
           _paged_prompts, _size, attrs=_page_size),
    Native(f"{_A}sink_attention", "sink_attention", "two matrix products and a softmax", _sinks,
           _kernel_dtype),
)  # fmt: skip
