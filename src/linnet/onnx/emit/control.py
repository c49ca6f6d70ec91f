"""Branches, calls, parameters and state.

A value that leaves a branch or a loop is taken apart into tensors, which become results of the `If`
or `Loop`, and put together again. States that a region may write are carried like any other value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.ir import Function, Op, Region
from linnet.ir.semantics import EvaluationError
from linnet.onnx.emit import loops
from linnet.onnx.emit.dtypes import dtype_of
from linnet.onnx.emit.errors import ExportError
from linnet.onnx.emit.held import Case, Held, Present
from linnet.onnx.emit.parts import flat, leaves
from linnet.onnx.emit.regions import dotted, leave, taken, writes
from linnet.onnx.emit.trace import Frame, Path, Tracer
from linnet.types import DType, OptionalType, Subst, TensorType, TupleType, Type

Control = Callable[[Tracer, Frame, Op], Sequence[Any]]

# --- branches -------------------------------------------------------------------------------------


Arm = Callable[[], list[Any]]


def branch(
    t: Tracer, frame: Frame, op: Op, condition: Held, arms: tuple[Arm, Arm]
) -> Sequence[Any]:
    """An `If`; where the condition is known, the arm alone."""
    if condition.const is not None:
        return arms[0 if condition.const else 1]()
    types = [frame.subst.type(v.type) for v in op.results]
    states = writes(t, frame, op.regions)
    for path in states:
        t.members.read(path)
    named = zip(("then", "else"), arms, strict=True)
    bodies = [_arm(t, arm, types, states, name) for name, arm in named]
    every = [leaf for type_ in types for leaf in leaves(type_)]
    every += [t.members.info(path).type for path in states]
    names = [v.name for v in op.results]
    made = t.c.b.nodes(
        "If", [t.c.value(condition)], [dtype_of(leaf) for leaf in every],
        names[0] if len(names) == 1 else "", then_branch=bodies[0], else_branch=bodies[1],
    )  # fmt: skip
    return taken(t, types, states, every, made)


def _arm(t: Tracer, arm: Arm, types: Sequence[Type], states: Sequence[str], name: str) -> ir.Graph:
    before, written = t.members.snapshot(), set(t.members.written)
    with t.c.b.inner() as scope:
        results = arm()
        parts = [h for type_, v in zip(types, results, strict=True) for h in flat(type_, v)]
        parts += [t.members.read(path) for path in states]
        outputs = leave(t, scope, parts)
    t.members.states.update(before)
    t.members.written = written | set(states)
    return ir.Graph((), outputs, nodes=scope.nodes, name=name)


def emit_if(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    (condition,) = t.operands(frame, op)
    arms = tuple((lambda r=region: t.region(frame, r)) for region in op.regions)
    return branch(t, frame, op, condition, arms)  # type: ignore[arg-type]


def emit_match_optional(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    (subject,) = t.operands(frame, op)
    if subject is None:
        return t.region(frame, op.regions[1])
    if isinstance(subject, Present):
        return t.region(frame, op.regions[0], (subject.value,))
    arms: tuple[Arm, Arm] = (
        lambda: t.region(frame, op.regions[0], (subject.value,)),
        lambda: t.region(frame, op.regions[1]),
    )
    return branch(t, frame, op, subject.flag, arms)


def emit_match_enum(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    (subject,) = t.operands(frame, op)
    pairs = list(zip(op.attrs["cases"], op.regions, strict=True))
    if not isinstance(subject, Case):
        region = next(r for cases, r in pairs if subject in cases)
        return t.region(frame, region)
    return _match_cases(t, frame, op, subject.number, pairs)


def _match_cases(
    t: Tracer, frame: Frame, op: Op, number: Held, pairs: Sequence[tuple[Sequence[int], Region]]
) -> Sequence[Any]:
    cases, region = pairs[0]
    if len(pairs) == 1:
        return t.region(frame, region)
    c = t.c
    test: ir.Value | None = None
    for case in cases:
        one = c.b.node("Equal", [c.value(number), c.scalar(case, DType.I64)], DType.BOOL)
        test = one if test is None else c.b.node("Or", [test, one], DType.BOOL)
    condition = Held.number(False, DType.BOOL) if test is None else Held.whole(test, DType.BOOL, ())
    arms: tuple[Arm, Arm] = (
        lambda: t.region(frame, region),
        lambda: list(_match_cases(t, frame, op, number, pairs[1:])),
    )
    return branch(t, frame, op, condition, arms)


def emit_match_sub(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    below = f"{dotted(frame.path(op.attrs['ref']))}."
    bound = any(path.startswith(below) for path in t.members.present)
    return t.region(frame, op.regions[0 if bound else 1])


# --- members and calls ----------------------------------------------------------------------------


def emit_param(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    path = dotted(frame.path(op.attrs["ref"]))
    optional = isinstance(op.result.type, OptionalType)
    if path not in t.members.present:
        if optional:
            return (None,)
        raise ExportError(f"the parameter `{path}` is missing", op.span)
    held = t.members.param(path)
    return (Present(held) if optional else held,)


def emit_state_read(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    return (t.members.read(dotted(frame.path(op.attrs["ref"]))),)


def emit_state_write(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    (value,) = t.operands(frame, op)
    t.members.write(dotted(frame.path(op.attrs["ref"])), t.c.wholly(value))
    return ()


def emit_call(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    callee = t.functions[op.attrs["callee"]]
    args = [frame.subst.arg(arg) for arg in op.attrs["generics"]]
    subst = Subst.of({g.var: arg for g, arg in zip(callee.generics, args, strict=True)})
    to = op.attrs["receiver"]
    receiver: Path = () if to is None else frame.path(to)
    if op.attrs.get("prepared"):
        return (_prepared(t, op, receiver, subst),)
    if to is None:
        receiver = frame.receiver  # for names alone: it has no members to reach
    result = t.call(callee, t.operands(frame, op), subst, receiver)
    return (result,) if op.results else ()


def _prepared(t: Tracer, op: Op, receiver: Path, subst: Subst) -> Any:
    """What depends on no input, once in the main graph; without weights, worked out now. What may
    fail stays where the program has it, perhaps in a branch that is never taken."""
    b, callee = t.c.b, t.functions[op.attrs["callee"]]
    key = ("prepared", callee.name, receiver)
    found = b.recall(key)
    if found is None and op.attrs["receiver"] is None:
        found = _worked_out(t, callee)
    if found is None:
        with nullcontext() if b.depth > 1 and not t.is_total(callee) else b.outermost():
            found = [t.call(callee, (), subst, receiver)]
            b.remember(key, found)
    return found[0]


def _worked_out(t: Tracer, callee: Function) -> list[Any] | None:
    """The constants that a function gives, kept for the next call; None where it fails in a branch
    or a loop. Raises `ExportError` where every call would fail."""
    try:
        value = t.prepared(callee)
    except EvaluationError as error:
        if t.c.b.depth > 1:
            return None
        raise ExportError(error.what, error.span) from error
    with t.c.b.outermost():
        made = [_constants(t, callee.result_types[0], value, callee.name)]
        t.c.b.remember(("prepared", callee.name, ()), made)
    return made


def _constants(t: Tracer, type_: Type, value: Any, name: str) -> Any:
    match type_:
        case TensorType():
            dtype = dtype_of(type_)
            return Held.whole(t.c.b.constant(np.asarray(value), dtype, name), dtype, type_.dims)
        case TupleType(items):
            return tuple(_constants(t, i, v, name) for i, v in zip(items, value, strict=True))
        case _:
            raise InternalError("onnx.emit", f"`{name}` prepares a {type_}")


CONTROL: dict[str, Control] = {
    "if": emit_if,
    "match_optional": emit_match_optional,
    "match_enum": emit_match_enum,
    "match_sub": emit_match_sub,
    "while": loops.emit_while,
    "for": loops.emit_for,
    "static_for": loops.emit_static_for,
    "for_subs": loops.emit_for_subs,
    "param": emit_param,
    "state_read": emit_state_read,
    "state_write": emit_state_write,
    "call": emit_call,
}
