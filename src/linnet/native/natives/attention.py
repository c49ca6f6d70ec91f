"""Attention: dense, by rows, and over pages, keys read only as far as they are seen."""

from __future__ import annotations

from linnet.backends.natives import Case, Native, Predicate
from linnet.ir import Op, Value
from linnet.native.emit.values import Buffer, Scalar
from linnet.native.emit.writer import Writer
from linnet.native.natives.base import KernelWriter, all_of, kernel_dtype, number, settled
from linnet.passes.masks import AtMost, MaskFact
from linnet.types import DType, TensorType

_QKV = kernel_dtype("q", "k", "v")


# --- what is known of the mask --------------------------------------------------------------------


def _bounded(case: Case) -> AtMost | None:
    """The mask as one bound on the key's position that the kernel can read."""
    if "mask" not in case.operands:
        return None
    fact = case.fact("mask")
    atom = fact.single if isinstance(fact, MaskFact) else None
    key = len(case.type("mask").dims) - 1
    if atom is None or atom.key != key or atom.query not in (None, key - 1):
        return None
    if atom.bound is None:
        return atom
    type_ = atom.bound.value.type
    if not isinstance(type_, TensorType) or type_.dtype is not DType.I32:
        return None
    return None if key in atom.bound.axes else atom


def _known(case: Case) -> str | None:
    return None if _bounded(case) is not None else "no last key of a query is known"


def _bound_operands(case: Case) -> tuple[Value, ...]:
    """Queries, keys, values, scale, and the bound where there is one; not the mask."""
    atom = _bounded(case)
    known = tuple(case.operands[n] for n in ("q", "k", "v", "scale"))
    return known if atom is None or atom.bound is None else (*known, atom.bound.value)


def _bound_attrs(case: Case) -> dict[str, object]:
    atom = _bounded(case)
    assert atom is not None
    query = len(case.type("mask").dims) - 2
    axes = () if atom.bound is None else atom.bound.axes
    return {"causal": atom.query is not None, "offset": atom.offset, "axes": tuple(
        None if axis is None else "query" if axis == query else "batch" for axis in axes
    )}  # fmt: skip


# --- code -----------------------------------------------------------------------------------------


def _begin(w: Writer, op: Op) -> tuple[Buffer, str]:
    """Memory for the result and the kernel's arguments, filled in as far as all forms agree."""
    q, k, v = (w.buffer(value) for value in op.operands[:3])
    scale = number(w, op.operands[3])
    w.module.uses_kernels = True
    out = w.result(op.result)
    name = w.names.fresh("attention")
    kind = "linnet::bf16" if q.dtype is DType.BF16 else "float"
    batch, heads, queries, width = (w.size(dim).text for dim in q.dims)
    kv_heads, keys = (w.size(dim).text for dim in k.dims[1:3])
    w.line(f"linnet::Attention<{kind}> {name};")
    w.line(f"{name}.q = {q.text}, {name}.k = {k.text}, {name}.v = {v.text}, "
           f"{name}.out = {out.text};")  # fmt: skip
    w.line(f"{name}.batch = {batch}, {name}.heads = {heads}, {name}.kv_heads = {kv_heads};")
    w.line(f"{name}.queries = {queries}, {name}.keys = {keys}, {name}.width = {width};")
    w.line(f"{name}.scale = {scale};")
    w.line(f"{name}.dense();")
    return out, name


def _prefix(w: Writer, op: Op) -> None:
    base = _base(w, op)
    out, name = _begin(w, op)
    if base is not None:
        text, strides = base
        w.line(f"{name}.base = {text}, {name}.base_batch = {strides['batch']}, "
               f"{name}.base_query = {strides['query']};")  # fmt: skip
    w.line(f"{name}.causal = {'true' if op.attrs['causal'] else 'false'};")
    offset = w.size(op.attrs["offset"])
    if offset.constant != 0:
        w.line(f"{name}.offset = {offset.text};")
    w.line(f"linnet::attention_prefix({name});")
    w.define(op.result, out)


def _base(w: Writer, op: Op) -> tuple[str, dict[str, str]] | None:
    """The bound's memory and its strides along sequences and queries."""
    if len(op.operands) < 5:
        return None
    strides = {"batch": "0", "query": "0"}
    entry = w.tensor(op.operands[4])
    if isinstance(entry, Scalar):
        name = w.names.fresh("last_key")
        w.line(f"const int32_t {name} = {entry.text};")
        return f"&{name}", strides
    bound = w.buffer(op.operands[4])
    for k, axis in enumerate(op.attrs["axes"]):
        if axis is not None:
            strides[axis] = w.count(bound.dims[k + 1 :])
    return bound.text, strides


def _all_keys(w: Writer, op: Op) -> None:
    out, name = _begin(w, op)
    w.line(f"{name}.offset = {name}.keys - 1;")
    w.line(f"linnet::attention_prefix({name});")
    w.define(op.result, out)


def _masked(mask_at: int, sinks_at: int | None = None) -> KernelWriter:
    def emit(w: Writer, op: Op) -> None:
        mask = w.buffer(op.operands[mask_at])
        sinks = "nullptr" if sinks_at is None else w.buffer(op.operands[sinks_at]).text
        scale_first = op.operands[4] if sinks_at is not None else op.operands[3]
        moved = Op(op.kind, (*op.operands[:3], scale_first), op.results, op.attrs, (), op.span)
        out, name = _begin(w, moved)
        by_batch = w.count(mask.dims[1:]) if len(mask.dims) == 3 else "0"
        w.line(f"linnet::attention_masked({name}, bytes_of({mask.text}), {by_batch}, "
               f"{w.size(mask.dims[-1]).text}, {sinks});")  # fmt: skip
        w.define(op.result, out)

    return emit


def _paged(prompts: bool) -> KernelWriter:
    def emit(w: Writer, op: Op) -> None:
        q, k, v, table, *rest = (w.buffer(value) for value in op.operands[:-1])
        rows = rest[0].text if prompts else "nullptr"
        positions = rest[-1].text
        scale = number(w, op.operands[-1])
        w.module.uses_kernels = True
        out = w.result(op.result)
        name = w.names.fresh("attention")
        kind = "linnet::bf16" if q.dtype is DType.BF16 else "float"
        tokens = w.size(q.dims[2 if prompts else 0]).text
        heads, width = w.size(q.dims[1]), w.size(q.dims[3])
        token = width.text if prompts else w.count(q.dims[1:])
        head = w.count(q.dims[2:]) if prompts else width.text
        size = w.size(op.attrs["size"]).text
        w.line(f"linnet::PagedAttention<{kind}> {name};")
        w.line(f"{name}.q = {q.text}, {name}.k = {k.text}, {name}.v = {v.text}, "
               f"{name}.out = {out.text};")  # fmt: skip
        w.line(f"{name}.tokens = {tokens}, {name}.heads = {heads.text}, "
               f"{name}.kv_heads = {w.size(k.dims[1]).text};")  # fmt: skip
        w.line(f"{name}.places = {w.size(k.dims[2]).text}, {name}.width = {width.text};")
        w.line(f"{name}.pages = {w.size(table.dims[1]).text}, {name}.page_size = {size};")
        w.line(f"{name}.table = {table.text}, {name}.rows = {rows}, "
               f"{name}.positions = {positions};")  # fmt: skip
        w.line(f"{name}.scale = {scale};")
        w.line(f"{name}.q_token = {name}.out_token = {token};")
        w.line(f"{name}.q_head = {name}.out_head = {head};")
        w.line(f"check_pages({name}, {w.size(table.dims[0]).text}, {w.where});")
        w.line(f"linnet::paged_attention({name});")
        w.define(op.result, out)

    return emit


def _page_size(case: Case) -> dict[str, object]:
    return {"size": case.query.generics["Size"]}


def _size_known(case: Case) -> str | None:
    size = case.query.generics.get("Size")
    if size is None or (size.constant is not None and size.constant < 1):
        return "the page size is not known"
    return None


def _no_mask(case: Case) -> str | None:
    return "there is a mask" if "mask" in case.operands else None


def _has_mask(case: Case) -> str | None:
    return None if "mask" in case.operands else "there is no mask"


def _f32_sinks(case: Case) -> str | None:
    return None if case.dtype("sinks") is DType.F32 else f"the sinks are {case.dtype('sinks')}"


_A = "std.nn.attention::"
_NOTE = "one pass over the keys"


def _family(op: str) -> tuple[Native[KernelWriter], ...]:
    path = f"{_A}{op}"
    usable: Predicate = all_of(_QKV, settled("mask"))
    return (
        Native(path, "attention_prefix", f"{_NOTE} that are seen", _prefix,
               all_of(usable, _has_mask, _known), _bound_operands, _bound_attrs),
        Native(path, "attention_all", f"{_NOTE}", _all_keys, all_of(usable, _no_mask)),
        Native(path, "attention_masked", f"{_NOTE} under the mask as it is", _masked(4),
               all_of(usable, _has_mask)),
    )  # fmt: skip


NATIVES: tuple[Native[KernelWriter], ...] = (
    *_family("attention"),
    *_family("grouped_attention"),
    *_family("attention_rows"),
    *_family("grouped_attention_rows"),
    Native(f"{_A}paged_attention", "paged_attention", "each row over its own pages, up to its "
           "position", _paged(False), all_of(_QKV, _size_known), attrs=_page_size),
    Native(f"{_A}paged_prefill_attention", "paged_prefill_attention",
           "each token over its row's pages, up to its position", _paged(True),
           all_of(_QKV, _size_known), attrs=_page_size),
    Native(f"{_A}sink_attention", "sink_attention", f"{_NOTE} with a sink a head",
           _masked(5, 3), all_of(_QKV, _f32_sinks)),
)  # fmt: skip
