"""Recurrent layers and mixtures of experts."""

from __future__ import annotations

from linnet.backends.natives import Native
from linnet.dims import Dim
from linnet.ir import Op
from linnet.native.emit.layout import dims_of
from linnet.native.emit.nest import Nest
from linnet.native.emit.values import Buffer, Dims, Lazy, Piece, Term
from linnet.native.emit.writer import Writer
from linnet.native.natives.base import KernelWriter, kernel_dtype, number, result_buffer
from linnet.types import DType

_ONE = Dim.of(1)
_TURN = (0, 2, 1, 3)  # a row's memory is [heads, keys, width]; an op's result has the keys first


def _kind(x: Buffer) -> str:
    return "linnet::bf16" if x.dtype is DType.BF16 else "float"


_Delta = tuple[Buffer, Buffer, str, list[str]]

# --- the gated delta rule -------------------------------------------------------------------------


def _delta(w: Writer, op: Op, tokens: Dim, batch: Dim, line: bool) -> _Delta:
    """Outputs `[.., tokens, heads, width]` and memories `[batch, heads, keys, width]`, the name of
    the kernel's arguments, and where each token's row and segment lie in a line."""
    q, k, v, decay, beta, start, *rest = (w.buffer(value) for value in op.operands[:-1])
    scale = number(w, op.operands[-1])
    w.module.uses_kernels = True
    heads, keys, width = start.dims[1:]
    out_dims = (tokens, heads, width) if line else (batch, tokens, heads, width)
    out = w.take(DType.F32, out_dims, "mixed")
    after = w.take(DType.F32, (batch, heads, keys, width), "memory")
    name = w.names.fresh("rule")
    w.line(f"linnet::DeltaRule<{_kind(q)}> {name};")
    w.line(f"{name}.q = {q.text}, {name}.k = {k.text}, {name}.v = {v.text};")
    w.line(f"{name}.decay = {decay.text}, {name}.beta = {beta.text};")
    w.line(f"{name}.start = {start.text}, {name}.after = {after.text}, {name}.out = {out.text};")
    w.line(f"{name}.batch = {w.size(batch).text}, {name}.tokens = {w.size(tokens).text};")
    w.line(f"{name}.key_heads = {w.size(q.dims[-2]).text}, {name}.heads = {w.size(heads).text};")
    w.line(f"{name}.keys = {w.size(keys).text}, {name}.width = {w.size(width).text};")
    w.line(f"{name}.scale = {scale};")
    return out, after, name, [each.text for each in rest]


def _rule(step: bool) -> KernelWriter:
    def emit(w: Writer, op: Op) -> None:
        dims = dims_of(op.operands[0])
        tokens = _ONE if step else dims[1]
        out, after, name, _ = _delta(w, op, tokens, dims[0], False)
        w.line(f"linnet::delta_rule({name});")
        w.define(op.result, _joined(w, op, 1, out, _turned(after)))

    return emit


def _rule_packed(w: Writer, op: Op) -> None:
    tokens, batch = dims_of(op.operands[0])[0], dims_of(op.operands[5])[0]
    out, after, name, line = _delta(w, op, tokens, batch, True)
    w.line(f"linnet::delta_rule_packed({name}, {', '.join(line)});")
    turned = _turned(after)
    heads, keys, width = after.dims[1:]

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        size = w.size(keys).factor
        row, key = (
            Term(f"{index[0].operand} {sign} {size}", index[0].level, False) for sign in "/%"
        )
        return nest.element(turned, (row, key, *index[1:]))

    rest = Lazy(DType.F32, (batch * keys, heads, width), element, 2, 2, forms=(turned,))
    w.define(op.result, _joined(w, op, 0, out, rest))


def _turned(memory: Buffer) -> Lazy:
    """Memories `[batch, keys, heads, width]`."""
    dims = tuple(memory.dims[axis] for axis in _TURN)

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        return nest.element(memory, [index[axis] for axis in _TURN])

    return Lazy(DType.F32, dims, element, 1, 1, turned=(memory, _TURN))


def _joined(w: Writer, op: Op, axis: int, out: Buffer, rest: Lazy) -> Lazy:
    """Outputs, then memories, along an axis: read apart as a rule, so they stay apart."""
    dims: Dims = dims_of(op.result)
    cut = out.dims[axis]

    def element(nest: Nest, index: tuple[Term, ...]) -> Term:
        size, at = w.size(cut), index[axis]
        moved = Term(f"{at.operand} - {size.factor}", at.level, False)
        first = nest.element(out, index)
        second = nest.element(rest, [*index[:axis], moved, *index[axis + 1 :]])
        level = max(first.level, second.level, at.level)
        text = f"{at.operand} < {size.factor} ? {first.operand} : {second.operand}"
        return Term(text, level, False)

    pieces = (
        Piece(axis, Dim.of(0), cut, out),
        Piece(axis, cut, rest.dims[axis], rest),
    )
    return Lazy(DType.F32, dims, element, 3, 3, name=op.result.name, pieces=pieces)


# --- experts --------------------------------------------------------------------------------------


def _experts(function: str, shared: bool) -> KernelWriter:
    def emit(w: Writer, op: Op) -> None:
        x, chosen = w.buffer(op.operands[0]), w.buffer(op.operands[2])
        weight = w.weight(op.operands[1])
        shares = [w.buffer(value).text for value in op.operands[3:]]
        given = weight.text if weight.param is None else w.module.packed(weight.param)
        out = result_buffer(w, op)
        name, bad = w.names.fresh("chosen"), w.names.fresh("bad")
        experts, outputs, cols = (w.size(dim).text for dim in weight.dims)
        w.line(f"linnet::Chosen<{_kind(x)}> {name};")
        w.line(f"{name}.x = {x.text}, {name}.chosen = {chosen.text};")
        w.line(f"{name}.rows = {w.size(chosen.dims[0]).text}, "
               f"{name}.k = {w.size(chosen.dims[1]).text};")  # fmt: skip
        w.line(f"{name}.experts = {experts}, {name}.outputs = {outputs}, {name}.cols = {cols};")
        if shared:
            w.line(f"{name}.shared = true;")
        arguments = ", ".join([given, name, *shares, out.text])
        w.line(f"const int64_t {bad} = linnet::{function}({arguments});")
        w.line(f"if ({bad} >= 0) fail_index({chosen.text}[{bad}], {experts}, {w.where});")
        w.define(op.result, out)

    return emit


def _top_k(w: Writer, op: Op) -> None:
    x = w.buffer(op.operands[0])
    out = result_buffer(w, op)
    rows, count = (w.size(dim).text for dim in x.dims)
    w.line(f"linnet::top_k({x.text}, {rows}, {count}, {w.size(out.dims[1]).text}, {out.text});")
    w.define(op.result, out)


_R, _M = "std.nn.recurrent::", "std.nn.moe::"
_X, _QKV = kernel_dtype("x"), kernel_dtype("q", "k", "v")
_STATE = "each head's memory kept in a core's cache from token to token"
_CHOSEN = "grouped by expert, each chosen expert's packed weight read once"
NATIVES: tuple[Native[KernelWriter], ...] = (
    Native(f"{_R}gated_delta_rule", "delta_rule", _STATE, _rule(False), _QKV),
    Native(f"{_R}gated_delta_step", "delta_step", "one pass over each head's memory", _rule(True),
           _QKV),
    Native(f"{_R}gated_delta_rule_packed", "delta_rule_packed", _STATE, _rule_packed, _QKV),
    Native(f"{_M}linear_experts", "linear_experts", _CHOSEN,
           _experts("linear_experts", False), _X),
    Native(f"{_M}linear_experts_shared", "linear_experts_shared", _CHOSEN,
           _experts("linear_experts", True), _X),
    Native(f"{_M}combine_experts", "combine_experts", f"{_CHOSEN}, summed in f32",
           _experts("combine_experts", False), _X),
    Native(f"{_M}top_k", "top_k", "one pass over a row", _top_k, _X),
)  # fmt: skip
