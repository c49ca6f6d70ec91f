"""Linear layers, norms, activations, softmax, rotation and decoding."""

from __future__ import annotations

from linnet.backends.natives import Case, Native
from linnet.ir import Op
from linnet.native.emit.layout import dims_of
from linnet.native.emit.reductions import not_empty
from linnet.native.emit.values import Scalar
from linnet.native.emit.writer import Writer
from linnet.native.natives.base import (
    KernelWriter,
    all_of,
    elementwise,
    kernel_dtype,
    number,
    result_buffer,
    rows,
    settled,
)
from linnet.types import DType


def _linear(w: Writer, op: Op) -> None:
    x = w.buffer(op.operands[0])
    weight = w.weight(op.operands[1])
    bias = w.buffer(op.operands[2]).text if len(op.operands) > 2 else "nullptr"
    count = rows(w, x.dims)
    gated = w.gated.get(op)
    if gated is not None and weight.param is not None:
        w.absorbed.update(gated.absorbed)
        w.module.uses_kernels = True
        out = w.result(gated.result)
        packed = w.module.packed(weight.param)
        w.line(f"linnet::linear_silu_mul({packed}, {x.text}, {count}, {out.text});")
        w.define(gated.result, out)
        return
    out = result_buffer(w, op)
    if weight.param is not None:
        packed = w.module.packed(weight.param)
        name = "linear_bf16" if x.dtype is DType.BF16 else "linear"
        w.line(f"linnet::{name}({packed}, {x.text}, {count}, {out.text}, {bias});")
        w.define(op.result, out)
        return
    outputs, inputs = (w.size(dim).text for dim in weight.dims)
    w.line(f"linnet::matmul({x.text}, {weight.text}, {out.text}, 1, {count}, {outputs}, "
           f"{inputs}, true, 0, 0);")  # fmt: skip
    if bias != "nullptr":
        w.line(f"add_bias({out.text}, {bias}, {count}, {outputs});")
    w.define(op.result, out)


def _embedding(w: Writer, op: Op) -> None:
    """Rows of the table, or of its packed form where it has one: as a tied head's weight, say."""
    ids = w.buffer(op.operands[0])
    table = w.weight(op.operands[1])
    count = w.count(ids.dims)
    vocab, width = (w.size(dim).text for dim in table.dims)
    out = result_buffer(w, op)
    rest = f"{ids.text}, {count}, {out.text}"
    call = f"linnet::embedding({table.text}, {vocab}, {width}, {rest})"
    if table.param is not None:
        packed = f"{table.param.block}.{w.module.structs.either(table.param)}"
        call = f"{packed} ? linnet::embedding(*{packed}, {rest}) : {call}"
    bad = w.names.fresh("bad")
    w.line(f"const int64_t {bad} = {call};")
    w.line(f"if ({bad} >= 0) fail_index({ids.text}[{bad}], {vocab}, {w.where});")
    w.define(op.result, out)


def _narrow_ids(case: Case) -> str | None:
    return None if case.dtype("ids") is DType.I32 else f"the ids are {case.dtype('ids')}"


def _rms_norm(w: Writer, op: Op) -> None:
    x, weight = w.buffer(op.operands[0]), w.buffer(op.operands[1])
    eps = number(w, op.operands[2])
    out = result_buffer(w, op)
    w.line(f"linnet::rms_norm({x.text}, {weight.text}, {eps}, {rows(w, x.dims)}, "
           f"{w.size(x.dims[-1]).text}, {out.text});")  # fmt: skip
    w.define(op.result, out)


def _layer_norm(w: Writer, op: Op) -> None:
    x, weight = w.buffer(op.operands[0]), w.buffer(op.operands[1])
    bias = w.buffer(op.operands[2]).text if len(op.operands) > 3 else "nullptr"
    eps = number(w, op.operands[-1])
    out = result_buffer(w, op)
    w.line(f"linnet::layer_norm({x.text}, {weight.text}, {bias}, {eps}, {rows(w, x.dims)}, "
           f"{w.size(x.dims[-1]).text}, {out.text});")  # fmt: skip
    w.define(op.result, out)


def _by_rows(function: str) -> KernelWriter:
    def emit(w: Writer, op: Op) -> None:
        x = w.buffer(op.operands[0])
        if function == "argmax":
            not_empty(w, x.dims[-1:], x.dims[:-1], "max")
        if not dims_of(op.result):
            w.module.uses_kernels = True
            name = w.names.fresh(op.result.name or "found")
            w.line(f"int32_t {name} = 0;")
            w.line(f"linnet::{function}({x.text}, 1, {w.size(x.dims[-1]).text}, &{name});")
            w.define(op.result, Scalar(name, DType.I32))
            return
        out = result_buffer(w, op)
        w.line(f"linnet::{function}({x.text}, {rows(w, x.dims)}, {w.size(x.dims[-1]).text}, "
               f"{out.text});")  # fmt: skip
        w.define(op.result, out)

    return emit


def _rope(by_row: bool) -> KernelWriter:
    def emit(w: Writer, op: Op) -> None:
        x = w.strided(op.operands[0])
        cos, sin = (w.buffer(v) for v in op.operands[1:])
        out = result_buffer(w, op)
        batch, heads, seq, width = (w.size(dim) for dim in out.dims)
        head, each = w.count(out.dims[2:]), w.count(out.dims[1:])
        table = width.text if by_row else "0"
        w.line(f"linnet::rope({x.text}, {cos.text}, {sin.text}, {out.text}, {batch.text}, "
               f"{heads.text}, {seq.text}, {width.text},")  # fmt: skip
        w.line(f"             {', '.join(x.steps[:3])}, {table}, {width.text}, {each}, {head}, "
               f"{width.text});")  # fmt: skip
        w.define(op.result, out)

    return emit


def _same(w: Writer, op: Op) -> None:
    w.define(op.result, w.entry(op.operands[0]))


_F = "std.nn."
_X = kernel_dtype("x")
_FUSED = "inside the loop that reads it, in f32"
NATIVES: tuple[Native[KernelWriter], ...] = (
    Native(f"{_F}linear::linear", "linear", "a packed matrix product, accumulated in f32", _linear,
           all_of(_X, settled("bias")), joins=(1, 2)),
    Native(f"{_F}embedding::embedding", "embedding", "rows of the table copied", _embedding,
           all_of(kernel_dtype("table"), _narrow_ids)),
    Native(f"{_F}norm::rms_norm", "rms_norm", "one pass a row, in f32", _rms_norm,
           _X),
    Native(f"{_F}norm::layer_norm", "layer_norm", "one pass a row, in f32", _layer_norm,
           all_of(_X, settled("bias"))),
    Native(f"{_F}activations::sigmoid", "sigmoid", _FUSED, elementwise("fast_sigmoid", 12), _X,
           numerics=frozenset(("fast",))),
    Native(f"{_F}activations::silu", "silu", _FUSED, elementwise("fast_silu", 12), _X,
           numerics=frozenset(("fast",))),
    Native(f"{_F}activations::gelu", "gelu", _FUSED, elementwise("fast_gelu", 16), _X,
           numerics=frozenset(("fast",))),
    Native(f"{_F}softmax::softmax", "softmax", "one pass a row, in f32", _by_rows("softmax"),
           _X),
    Native(f"{_F}rope::rope", "rope", "one pass", _rope(False), _X),
    Native(f"{_F}rope::rope_rows", "rope_rows", "one pass", _rope(True), _X),
    Native(f"{_F}decoding::argmax", "argmax", "the first of equals", _by_rows("argmax"),
           _X),
    Native(f"{_F}parallel::all_reduce", "all_reduce", "one device: the value itself", _same,
           alias=(0,)),
    Native(f"{_F}parallel::shared", "shared", "one device: the value itself", _same, alias=(0,)),
)  # fmt: skip
