"""Parameters, state and calls."""

from __future__ import annotations

from dataclasses import replace

from linnet.backends.emit.calls import arguments
from linnet.backends.emit.dtypes import dtype_of, rank_of
from linnet.backends.emit.loops import variable_expr
from linnet.backends.expr import Expr, joined
from linnet.ir import Op, Ref, Value
from linnet.jax.emit.aggregates import zeros
from linnet.jax.emit.dtypes import HALF, spelled
from linnet.jax.emit.names import STATE, field
from linnet.jax.emit.state import state_names, state_path, state_text, store
from linnet.jax.emit.writer import Writer
from linnet.types import DType, OptionalType


def emit_param(w: Writer, op: Op) -> None:
    ref: Ref = op.attrs["ref"]
    expr = Expr(w.ref(ref), rank=rank_of(op.result.type), names=w.ref_names(ref))
    if isinstance(op.result.type, OptionalType):
        text, names = zeros(w, op.result.type.inner)
        made = f"{w.module.helper('optional')}({expr.text}, {text})"
        expr = replace(expr, text=made, names=expr.names | names)
    w.define(op.result, expr, hint="weight")


def emit_state_read(w: Writer, op: Op) -> None:
    path = state_path(w, op.attrs["ref"])
    names = state_names(w, op.attrs["ref"])
    text = state_text(w, path)
    dtype = _held_as_bits(w, op.result)
    if dtype is not None:
        text = f"{w.module.helper('from_bits')}({text}, {spelled(dtype)})"
    expr = Expr(text, rank=rank_of(op.result.type), names=names)
    w.define(op.result, expr, hint=str(op.attrs["ref"].steps[-1]))


def emit_state_write(w: Writer, op: Op) -> None:
    value = op.operands[0]
    expr = w.component(value)
    w.keep_old_state(expr.names)
    text = expr.text
    if _held_as_bits(w, value) is not None:
        text = f"{w.module.helper('as_bits')}({text})"
    store(w, state_path(w, op.attrs["ref"]), text)


def _held_as_bits(w: Writer, value: Value) -> DType | None:
    """The dtype of a state that is held as integers."""
    if not w.module.options.bits:
        return None
    dtype = dtype_of(value.type)
    return dtype if dtype in HALF else None


def emit_call(w: Writer, op: Op) -> None:
    callee = w.module.callee(op.attrs["callee"])
    receiver: Ref | None = op.attrs.get("receiver")
    where = Ref(None, ()) if receiver is None else receiver
    if callee.key in w.module.options.kept:
        text = f"{w.ref(where)}.{w.module.options.kept[callee.key]}"
        made = Expr(text, rank=rank_of(op.result.type), names=w.ref_names(where))
        w.define(op.result, made, hint=callee.hint)
        return
    parts: list[Expr] = []
    if callee.takes_block:
        parts.append(Expr(w.ref(where), names=w.ref_names(where)))
    if callee.takes_state:
        parts.append(Expr(state_text(w, state_path(w, where)), names=state_names(w, where)))
    parts += arguments(w, op, callee)
    text = f"{callee.name}({', '.join(p.text for p in parts)})"
    names = joined(tuple(parts))
    if callee.writes:
        _writing(w, op, where, text, names)
        return
    if not op.results:
        return
    if w.is_unpacked(op.result):
        w.line(f"{w.unpack(op.result)} = {text}")
        return
    made = variable_expr(w, op.result, text)
    w.define(op.result, replace(made, names=names), hint=callee.hint)


def _writing(w: Writer, op: Op, where: Ref, text: str, names: frozenset[str]) -> None:
    """A call that also gives the state as it leaves it."""
    path = state_path(w, where)
    w.keep_old_state(names)
    part = w.scratch(f"{field(str(path[-1]))}_state" if where.steps else "part") if path else STATE
    places = [_result_place(w, op.result)] if op.results else []
    w.line(f"{', '.join([*places, part])} = {text}")
    store(w, path, part)


def _result_place(w: Writer, value: Value) -> str:
    if w.left[value.id] == 0:
        return "_"
    if w.is_unpacked(value):
        return f"({w.unpack(value)})"
    return w.place_for(value, "result")


def emit_native(w: Writer, op: Op) -> None:
    kernel = w.module.kernels[op.attrs["kernel"]]
    w.define(op.result, kernel(w, op), hint=op.attrs["kernel"])
