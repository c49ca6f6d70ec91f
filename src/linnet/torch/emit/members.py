"""Parameters, state and calls."""

from __future__ import annotations

from dataclasses import replace

from linnet.backends.emit import layout
from linnet.backends.emit.calls import arguments
from linnet.backends.emit.dtypes import dtype_of, inner_type, rank_of
from linnet.backends.emit.loops import variable_expr
from linnet.backends.expr import ATOM, Expr, joined
from linnet.backends.names import attribute
from linnet.ir import Op, Ref, Value
from linnet.passes.join import JOINED
from linnet.torch.emit.dtypes import WIDE
from linnet.torch.emit.writer import Writer
from linnet.types import DType, OptionalType


def _opened(w: Writer, text: str, value: Value, names: frozenset[str], alias: str) -> Expr:
    """A stored tensor as generated code carries it."""
    type_ = inner_type(value.type)
    held = Expr(text, rank=rank_of(type_), names=names, alias=frozenset((alias,)))
    dtype = dtype_of(type_)
    if dtype not in WIDE:
        return held
    if isinstance(value.type, OptionalType):
        return replace(held, text=f"{w.module.helper('widened')}({text})")
    if dtype is DType.U64:
        return replace(held, text=f"{text}.view(torch.int64)")
    return replace(held, text=f"{text}.to(torch.int64)", alias=frozenset())


def emit_param(w: Writer, op: Op) -> None:
    ref: Ref = op.attrs["ref"]
    w.define(op.result, _opened(w, w.ref(ref), op.result, w.ref_names(ref), "?"), hint="weight")


def emit_concat(w: Writer, op: Op) -> None:
    if not op.attrs.get(JOINED):
        layout.emit_concat(w, op)
        return
    ref: Ref = op.attrs["ref"]  # parameters that lie in one storage
    text = f"{w.ref(ref)}.{attribute(op.attrs[JOINED])}"
    rank = rank_of(op.result.type)
    w.define(op.result, Expr(text, rank=rank, names=w.ref_names(ref), alias=w.memory))


def emit_state_read(w: Writer, op: Op) -> None:
    ref: Ref = op.attrs["ref"]
    expr = _opened(w, w.ref(ref), op.result, w.ref_names(ref), str(ref))
    if op.attrs.get("copy"):
        copied = replace(expr, text=f"{expr.at(ATOM)}.clone()", alias=frozenset())
        w.define(op.result, copied, effect=True, hint=str(ref.steps[-1]))
        return
    w.define(op.result, expr, hint=str(ref.steps[-1]))


def emit_state_write(w: Writer, op: Op) -> None:
    ref: Ref = op.attrs["ref"]
    value = op.operands[0]
    if op.attrs.get("done"):
        w.flush()
        return
    w.flush(w.peek(value).names)
    expr, dtype = w.get(value), dtype_of(value.type)
    target = w.ref(ref)
    if dtype is DType.U64:
        target += ".view(torch.int64)"
    if expr.host:
        w.line(f"{target}.fill_({w.number(expr, dtype).text})")
        return
    text = expr.text
    if "?" in expr.alias or str(ref) in expr.alias:
        text = f"{expr.at(ATOM)}.clone()"
    w.line(f"{target}.copy_({text})")


def emit_call(w: Writer, op: Op) -> None:
    callee = w.module.callee(op.attrs["callee"])
    receiver: Ref | None = op.attrs.get("receiver")
    if w.in_sub_loop:
        w.module.loop_callees.add(callee.name)
    parts: list[Expr] = []
    if callee.takes_block:
        where = Ref(None, ()) if receiver is None else receiver
        parts.append(Expr(w.ref(where), names=w.ref_names(where)))
    parts += arguments(w, op, callee)
    texts = [p.text for p in parts]
    if op.attrs.get("prepared"):
        text = f"{w.module.prepared()}({', '.join([callee.name, *texts])})"
    elif callee.gradient is not None:
        text = w.module.with_gradient(callee, texts)
    else:
        text = f"{callee.name}({', '.join(texts)})"
    names = joined(tuple(parts))
    if not op.results:
        w.flush(names)
        w.line(text)
        return
    if w.is_unpacked(op.result):
        w.flush(names)
        w.line(f"{w.unpack(op.result, names)} = {text}")
        return
    made = variable_expr(w, op.result, text, callee.alias)
    made = replace(made, names=names)
    w.define(op.result, made, effect=callee.writes, hint=callee.hint)


def emit_native(w: Writer, op: Op) -> None:
    kernel = w.module.kernels[op.attrs["kernel"]]
    expr = kernel(w, op)
    alias = frozenset("?") if op.attrs.get("alias") or op.attrs.get("in_place") else frozenset()
    made = replace(expr, alias=expr.alias | alias)
    in_place = bool(op.attrs.get("in_place"))
    w.define(op.result, made, effect=in_place, hint=op.attrs["kernel"])
