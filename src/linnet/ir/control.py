"""What control flow, calls, parameters and state mean to the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.diagnostics import InternalError
from linnet.ir.core import Op
from linnet.ir.instances import Place, resolve
from linnet.ir.semantics import EvaluationError, Some, Tensor
from linnet.ir.semantics.model import integer
from linnet.types import GenericArg, OptionalType, TensorType, Type

if TYPE_CHECKING:
    from linnet.ir.evaluate import Frame

Control = Callable[["Frame", Op], tuple[Any, ...]]
CONTROL: dict[str, Control] = {}


def control(kind: str) -> Callable[[Control], Control]:
    """Registers the meaning of one row."""

    def register(function: Control) -> Control:
        CONTROL[kind] = function
        return function

    return register


def _operands(frame: Frame, op: Op) -> list[Any]:
    return [frame.values[value] for value in op.operands]


@control("if")
def _if(frame: Frame, op: Op) -> tuple[Any, ...]:
    (condition,) = _operands(frame, op)
    return frame.region(op.regions[0 if bool(condition) else 1])


@control("match_optional")
def _match_optional(frame: Frame, op: Op) -> tuple[Any, ...]:
    (subject,) = _operands(frame, op)
    if subject is None:
        return frame.region(op.regions[1])
    return frame.region(op.regions[0], (subject.value,))


@control("match_enum")
def _match_enum(frame: Frame, op: Op) -> tuple[Any, ...]:
    (subject,) = _operands(frame, op)
    for cases, region in zip(op.attrs["cases"], op.regions, strict=True):
        if subject in cases:
            return frame.region(region)
    raise InternalError("ir.evaluate", f"no region takes case {subject}", op.span)


@control("match_sub")
def _match_sub(frame: Frame, op: Op) -> tuple[Any, ...]:
    place = resolve(op.attrs["ref"], frame.receiver, frame.subs)
    below = f"{place.dotted}."
    bound = any(path.startswith(below) for path in frame.evaluator.params)
    return frame.region(op.regions[0 if bound else 1])


@control("while")
def _while(frame: Frame, op: Op) -> tuple[Any, ...]:
    carried = tuple(_operands(frame, op))
    condition, step = op.regions
    for _ in range(frame.evaluator.loop_limit):
        (going,) = frame.region(condition, carried)
        if not bool(going):
            return carried
        carried = frame.region(step, carried)
    raise EvaluationError(f"a loop ran {frame.evaluator.loop_limit} times", op.span)


def _numbers(frame: Frame, op: Op, first: int, stop: int) -> range:
    if stop - first > frame.evaluator.loop_limit:
        raise EvaluationError(f"a loop would run {stop - first} times", op.span)
    return range(first, stop)


@control("for")
def _for(frame: Frame, op: Op) -> tuple[Any, ...]:
    first, stop, *rest = _operands(frame, op)
    carried = tuple(rest)
    yielded: list[tuple[Any, ...]] = []
    for i in _numbers(frame, op, integer(first), integer(stop)):
        results = frame.region(op.regions[0], (np.array(i, first.dtype), *carried))
        carried = results[: len(carried)]
        yielded.append(results[len(carried) :])
    types = frame.plan.concrete(op).types[len(carried) :]
    stacks = (_stack(op, type_, [row[k] for row in yielded]) for k, type_ in enumerate(types))
    return (*carried, *stacks)


def _stack(op: Op, type_: Type, items: list[Any]) -> Any:
    """One yielded value of every iteration along a new first axis."""
    if not isinstance(type_, TensorType):
        raise InternalError("ir.evaluate", f"`for` stacks {type_}", op.span)
    wanted = Tensor.of(type_)
    if len(items) != wanted.shape[0]:
        raise EvaluationError(
            f"a loop ran {len(items)} times where its values' type says {wanted.shape[0]}", op.span
        )
    return np.stack(items) if items else np.empty(wanted.shape, wanted.numpy)


@control("static_for")
def _static_for(frame: Frame, op: Op) -> tuple[Any, ...]:
    attrs = frame.plan.concrete(op).attrs
    carried = tuple(_operands(frame, op))
    for i in _numbers(frame, op, integer(attrs["start"]), integer(attrs["stop"])):
        carried = frame.region(op.regions[0], (np.array(i, np.int64), *carried))
    return carried


@control("for_subs")
def _for_subs(frame: Frame, op: Op) -> tuple[Any, ...]:
    array = resolve(op.attrs["array"], frame.receiver, frame.subs)
    if array.count is None:
        raise InternalError("ir.evaluate", f"`{array.dotted}` is no array", op.span)
    attrs = frame.plan.concrete(op).attrs
    start = attrs.get("start", 0)
    stop = attrs.get("stop", array.count)
    carried = tuple(_operands(frame, op))
    for k in range(integer(start), integer(stop)):
        frame.subs[op.attrs["var"]] = array.child(k)
        carried = frame.region(op.regions[0], carried)
    return carried


def _member(frame: Frame, op: Op) -> tuple[Place, str]:
    """The block that holds the member, and the member's name."""
    ref = op.attrs["ref"]
    place = resolve(type(ref)(ref.root, ref.steps[:-1]), frame.receiver, frame.subs)
    return place, str(ref.steps[-1])


@control("param")
def _param(frame: Frame, op: Op) -> tuple[Any, ...]:
    place, name = _member(frame, op)
    path = place.member(name)
    (type_,) = frame.plan.concrete(op).types
    value = frame.evaluator.params.get(path)
    optional = isinstance(type_, OptionalType)
    if value is None:
        if optional:
            return (None,)
        raise EvaluationError(f"parameter `{path}` is missing", op.span)
    inner = type_.inner if isinstance(type_, OptionalType) else type_
    array = np.asarray(value)
    if not isinstance(inner, TensorType):
        raise InternalError("ir.evaluate", f"parameter `{path}` is {inner}", op.span)
    wanted = Tensor.of(inner)
    if array.shape != wanted.shape or array.dtype != wanted.numpy:
        raise EvaluationError(f"`{path}` is {array.dtype}{list(array.shape)}, not {inner}", op.span)
    return (Some(array) if optional else array,)


@control("state_read")
def _state_read(frame: Frame, op: Op) -> tuple[Any, ...]:
    place, name = _member(frame, op)
    path, state = place.member(name), frame.evaluator.state
    if path not in state:
        wanted = place.state_type(name)
        state[path] = np.zeros(wanted.shape, wanted.numpy)
    return (state[path],)


@control("state_write")
def _state_write(frame: Frame, op: Op) -> tuple[Any, ...]:
    place, name = _member(frame, op)
    frame.evaluator.state[place.member(name)] = frame.values[op.operands[0]]
    return ()


@control("call")
def _call(frame: Frame, op: Op) -> tuple[Any, ...]:
    attrs = frame.plan.concrete(op).attrs
    args: tuple[GenericArg, ...] = attrs["generics"]
    receiver = attrs["receiver"]
    place = None if receiver is None else resolve(receiver, frame.receiver, frame.subs)
    plan = frame.evaluator.plan(attrs["callee"], args)
    result = frame.evaluator.call(plan, _operands(frame, op), place)
    return (result,) if op.results else ()


@control("native")
def _native(frame: Frame, op: Op) -> tuple[Any, ...]:
    concrete = frame.plan.concrete(op)
    operands = tuple(_operands(frame, op))
    call = type(concrete)(
        op.kind, operands, concrete.attrs, concrete.types, concrete.inputs, op.span
    )
    result = frame.evaluator.native(call)
    return tuple(result) if len(op.results) != 1 else (result,)
