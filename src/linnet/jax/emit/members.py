"""Parameters, state and calls."""

from __future__ import annotations

from dataclasses import replace

from linnet.backends.expr import Expr, joined
from linnet.ir import Op, Ref, Value
from linnet.jax.emit.aggregates import whole_rank
from linnet.jax.emit.control import variable_expr
from linnet.jax.emit.names import field
from linnet.jax.emit.writer import STATE, Writer
from linnet.types import OptionalType


def emit_param(w: Writer, op: Op) -> None:
    ref: Ref = op.attrs["ref"]
    expr = Expr(w.ref(ref), rank=whole_rank(op.result.type), names=w.ref_names(ref))
    if isinstance(op.result.type, OptionalType):
        text, names = w.zeros(op.result.type.inner)
        made = f"{w.module.helper('optional')}({expr.text}, {text})"
        expr = replace(expr, text=made, names=expr.names | names)
    w.define(op.result, expr, hint="weight")


def emit_state_read(w: Writer, op: Op) -> None:
    path = w.state_path(op.attrs["ref"])
    names = _state_names(w, op.attrs["ref"])
    expr = Expr(w.state_text(path), rank=whole_rank(op.result.type), names=names)
    w.define(op.result, expr, hint=str(op.attrs["ref"].steps[-1]))


def _state_names(w: Writer, ref: Ref) -> frozenset[str]:
    counter = "" if ref.root is None else w.subs[ref.root].counter
    return frozenset((STATE, counter)) if counter else frozenset((STATE,))


def emit_state_write(w: Writer, op: Op) -> None:
    value = op.operands[0]
    expr = w.component(value)
    w.keep_old_state(expr.names)
    w.store(w.state_path(op.attrs["ref"]), expr.text)


def emit_call(w: Writer, op: Op) -> None:
    callee = w.module.callee(op.attrs["callee"])
    receiver: Ref | None = op.attrs.get("receiver")
    where = Ref(None, ()) if receiver is None else receiver
    parts: list[Expr] = []
    if callee.takes_block:
        parts.append(Expr(w.ref(where), names=w.ref_names(where)))
    if callee.takes_state:
        parts.append(Expr(w.state_text(w.state_path(where)), names=_state_names(w, where)))
    for operand, host in zip(op.operands, callee.host_params, strict=True):
        parts.append(w.get(operand) if host else w.component(operand))
    for index in callee.size_args:
        size = w.size(op.attrs["generics"][index])
        parts.append(Expr(size.text, size.prec, names=size.names))
    text = f"{callee.name}({', '.join(p.text for p in parts)})"
    names = joined(tuple(parts))
    if callee.writes:
        _writing(w, op, where, text, names)
        return
    if not op.results:
        return
    places = w.unpacking(op.result)
    if places is not None:
        w.line(f"{', '.join(places)}{',' * (len(places) == 1)} = {text}")
        return
    made = variable_expr(w, op.result, text)
    w.define(op.result, replace(made, names=names), hint=callee.hint)


def _writing(w: Writer, op: Op, where: Ref, text: str, names: frozenset[str]) -> None:
    """A call that also gives the state as it leaves it."""
    path = w.state_path(where)
    w.keep_old_state(names)
    part = w.scratch(f"{field(str(path[-1]))}_state" if where.steps else "part") if path else STATE
    places = [_result_place(w, op.result)] if op.results else []
    w.line(f"{', '.join([*places, part])} = {text}")
    w.store(path, part)


def _result_place(w: Writer, value: Value) -> str:
    if w.left[value.id] == 0:
        return "_"
    places = w.unpacking(value)
    if places is not None:
        return f"({', '.join(places)}{',' * (len(places) == 1)})"
    return w.place_for(value, "result")


def emit_native(w: Writer, op: Op) -> None:
    kernel = w.module.kernels[op.attrs["kernel"]]
    w.define(op.result, kernel(w, op), hint=op.attrs["kernel"])
