"""Branches, loops, calls, parameters and state.

A value that leaves a branch or a loop is taken apart into tensors (`flat`), which become results of
the `If` or `Loop`, and put together again (`rebuilt`). States that a region may write are carried
like any other value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.dims import Dim
from linnet.ir import Op, Region, Value
from linnet.ir.renumber import substitute_attrs
from linnet.onnx.emit.dtypes import ONNX, dtype_of, tensor
from linnet.onnx.emit.errors import ExportError
from linnet.onnx.emit.graph import Scope, subgraph
from linnet.onnx.emit.held import Case, Held, Maybe, Present
from linnet.onnx.emit.sizes import shape_of
from linnet.onnx.emit.trace import Frame, Path, Tracer, case_number
from linnet.types import (
    DType,
    EnumType,
    OptionalType,
    StructType,
    Subst,
    TensorType,
    TupleType,
    Type,
)

Control = Callable[[Tracer, Frame, Op], Sequence[Any]]
UNROLLED = 20_000  # nodes, above which a counted loop stays a loop


# --- taking values apart ----------------------------------------------------------------------------


def leaves(type_: Type) -> list[TensorType]:
    """The tensors that a value of the type is made of."""
    match type_:
        case TensorType():
            return [type_]
        case TupleType(items):
            return [leaf for item in items for leaf in leaves(item)]
        case StructType(fields=fields):
            return [leaf for _, item in fields for leaf in leaves(item)]
        case OptionalType(inner):
            return [TensorType((), DType.BOOL), *leaves(inner)]
        case EnumType():
            return [TensorType((), DType.I64)]
        case _:
            raise InternalError("onnx.emit", f"no value has the type {type_}")


def flat(t: Tracer, type_: Type, value: Any) -> list[Held]:
    """The tensors of a value, in the order of `leaves`."""
    match type_:
        case TensorType():
            return [value]
        case TupleType(items):
            return [h for i, v in zip(items, value, strict=True) for h in flat(t, i, v)]
        case StructType(fields=fields):
            return [h for (_, i), v in zip(fields, value, strict=True) for h in flat(t, i, v)]
        case OptionalType(inner):
            if isinstance(value, Maybe):
                return [value.flag, *flat(t, inner, value.value)]
            flag = Held.number(value is not None, DType.BOOL)
            if value is None:
                return [flag, *(_zeros(leaf) for leaf in leaves(inner))]
            return [flag, *flat(t, inner, value.value)]
        case _:
            return [case_number(value)]


def _zeros(type_: TensorType) -> Held:
    dtype = dtype_of(type_)
    zero = False if dtype is DType.BOOL else 0.0 if dtype.is_float else 0
    return Held.number(zero, dtype, type_.dims)


def rebuilt(type_: Type, parts: list[Held]) -> Any:
    """The value whose tensors come first in `parts`, which loses them."""
    match type_:
        case TensorType():
            return parts.pop(0)
        case TupleType(items):
            return tuple(rebuilt(item, parts) for item in items)
        case StructType(fields=fields):
            return tuple(rebuilt(item, parts) for _, item in fields)
        case OptionalType(inner):
            flag = parts.pop(0)
            return Maybe(flag, rebuilt(inner, parts))
        case _:
            return Case(parts.pop(0))


# --- which states a region writes -------------------------------------------------------------------


def writes(t: Tracer, frame: Frame, regions: Iterable[Region]) -> list[str]:
    """The paths of the states that may be written, in a fixed order."""
    found: dict[str, None] = {}
    for region in regions:
        _region_writes(t, frame.receiver, dict(frame.subs), region, found)
    return list(found)


def _region_writes(
    t: Tracer, receiver: Path, subs: dict[Any, Path], region: Region, found: dict[str, None]
) -> None:
    def path(ref: Any) -> Path:
        return (*(receiver if ref.root is None else subs[ref.root]), *ref.steps)

    for op in region.ops:
        if op.kind == "state_write":
            found[dotted(path(op.attrs["ref"]))] = None
        elif op.kind == "call" and op.attrs["receiver"] is not None:
            callee = t.functions[op.attrs["callee"]]
            _region_writes(t, path(op.attrs["receiver"]), {}, callee.body, found)
        elif op.kind == "for_subs":
            for child in elements(t, path(op.attrs["array"]), op):
                _region_writes(t, receiver, {**subs, op.attrs["var"]: child}, op.regions[0], found)
        else:
            for inner in op.regions:
                _region_writes(t, receiver, subs, inner, found)


def dotted(path: Path) -> str:
    return ".".join(map(str, path))


def elements(t: Tracer, array: Path, op: Op) -> list[Path]:
    """The child blocks that a `for_subs` runs over."""
    held = t.instance(array)
    if not isinstance(held, tuple):
        raise InternalError("onnx.emit", f"`{dotted(array)}` is no array", op.span)
    start, stop = op.attrs.get("start"), op.attrs.get("stop")
    numbers = range(start or 0, len(held) if stop is None else stop)
    return [(*array, k) for k in numbers]


# --- branches ---------------------------------------------------------------------------------------


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
    bodies = [_arm(t, arm, types, states, f"{k}") for k, arm in zip(("then", "else"), arms)]
    every = [leaf for type_ in types for leaf in leaves(type_)]
    every += [t.members.info(path).type for path in states]
    names = [v.name for v in op.results]
    made = t.c.b.nodes(
        "If", [t.c.value(condition)], [dtype_of(leaf) for leaf in every],
        names[0] if len(names) == 1 else "", then_branch=bodies[0], else_branch=bodies[1],
    )  # fmt: skip
    return _taken(t, types, states, every, made)


def _arm(t: Tracer, arm: Arm, types: Sequence[Type], states: Sequence[str], name: str) -> ir.Graph:
    before, written = t.members.snapshot(), set(t.members.written)
    with t.c.b.inner() as scope:
        results = arm()
        parts = [h for type_, v in zip(types, results, strict=True) for h in flat(t, type_, v)]
        parts += [t.members.read(path) for path in states]
        outputs = leave(t, scope, parts)
    t.members.states.update(before)
    t.members.written = written | set(states)
    return subgraph(name, (), outputs, scope.nodes)


def leave(t: Tracer, scope: Scope, parts: Sequence[Held]) -> list[ir.Value]:
    """The parts as results of the scope's graph: each a value of its own that was made in it."""
    outputs: list[ir.Value] = []
    mine = {id(value) for node in scope.nodes for value in node.outputs}
    for held in parts:
        value = t.c.whole(held)
        mine |= {id(v) for v in scope.nodes[-1].outputs} if scope.nodes else set()
        if id(value) not in mine or any(value is other for other in outputs):
            value = t.c.b.node("Identity", [value], held.dtype, "result")
        value.shape = shape_of(held.dims)
        outputs.append(value)
    return outputs


def _taken(
    t: Tracer, types: Sequence[Type], states: Sequence[str], every: Sequence[TensorType],
    made: Sequence[ir.Value],
) -> list[Any]:  # fmt: skip
    """What an `If` or `Loop` gives, as held values; states take theirs."""
    parts = [
        Held.whole(value, dtype_of(leaf), leaf.dims)
        for leaf, value in zip(every, made, strict=True)
    ]
    values = [rebuilt(type_, parts) for type_ in types]
    for path, held in zip(states, parts, strict=True):
        t.members.write(path, held)
    return values


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


# --- loops ------------------------------------------------------------------------------------------


class Carried:
    """What a loop carries: the program's values, then the states it writes."""

    def __init__(self, t: Tracer, frame: Frame, op: Op, values: Sequence[Value]) -> None:
        self.t = t
        self.types = [frame.subst.type(v.type) for v in values]
        self.states = writes(t, frame, op.regions)
        self.leaves = [leaf for type_ in self.types for leaf in leaves(type_)]
        self.leaves += [t.members.info(path).type for path in self.states]

    def start(self, values: Sequence[Any]) -> list[Held]:
        parts = [h for t_, v in zip(self.types, values, strict=True) for h in flat(self.t, t_, v)]
        parts += [self.t.members.read(path) for path in self.states]
        return parts

    def inputs(self) -> list[ir.Value]:
        b = self.t.c.b
        return [
            ir.Value(name=b.fresh(b._named("carried")), type=ir.TensorType(ONNX[dtype_of(leaf)]),
                     shape=shape_of(leaf.dims))
            for leaf in self.leaves
        ]  # fmt: skip

    def enter(self, inputs: Sequence[ir.Value]) -> list[Any]:
        """The carried values inside the body; states are what the body got."""
        return _taken(self.t, self.types, self.states, self.leaves, inputs)

    def wide(self, parts: Sequence[Held]) -> list[ir.Value]:
        return [self.t.c.whole(h) for h in parts]


def loop(
    t: Tracer, frame: Frame, op: Op, carried: Carried, trips: ir.Value | None,
    going: ir.Value | None, initial: Sequence[Any],
    body: Callable[[ir.Value, list[Any]], tuple[Held, list[Any], list[Held]]],
) -> tuple[list[Any], list[ir.Value]]:  # fmt: skip
    """A `Loop`: `body` takes the turn's number and the carried values, and gives whether to go on,
    the next values and what to stack."""
    b = t.c.b
    start = carried.wide(carried.start(initial))
    number = ir.Value(name=b.fresh(b._named("turn")), type=ir.TensorType(ONNX[DType.I64]),
                      shape=ir.Shape(()))  # fmt: skip
    flag = ir.Value(name=b.fresh(b._named("going")), type=ir.TensorType(ONNX[DType.BOOL]),
                    shape=ir.Shape(()))  # fmt: skip
    inputs = carried.inputs()
    with b.inner() as scope:
        on, values, stacked = body(number, carried.enter(inputs))
        outputs = leave(t, scope, [on, *carried.start(values), *stacked])
    graph = subgraph("body", [number, flag, *inputs], outputs, scope.nodes)
    dtypes = [dtype_of(leaf) for leaf in carried.leaves] + [h.dtype for h in stacked]
    hint = op.results[-1].name if op.results else ""
    made = b.nodes("Loop", [trips, going, *start], dtypes, hint, body=graph)
    count = len(carried.leaves)
    return carried.enter(made[:count]), made[count:]


def emit_while(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    test, step = op.regions
    carried = Carried(t, frame, op, op.results)
    initial = t.operands(frame, op)
    (first,) = t.region(frame, test, initial)

    def body(number: ir.Value, values: list[Any]) -> tuple[Held, list[Any], list[Held]]:
        after = t.region(frame, step, values)
        (on,) = t.region(frame, test, after)
        return on, after, []

    results, _ = loop(t, frame, op, carried, None, t.c.value(first), initial, body)
    return results


def emit_for(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    first, stop, *initial = t.operands(frame, op)
    c, yields = t.c, op.attrs.get("yields", 0)
    count = len(op.results) - yields
    carried = Carried(t, frame, op, op.results[:count])
    index = op.regions[0].params[0]
    dtype = dtype_of(index.type)
    low, high = (c.convert(c.value(h), h.dtype, DType.I64) for h in (first, stop))
    trips = c.b.node("Sub", [high, low], DType.I64, "turns") if first.const != 0 else high

    def body(number: ir.Value, values: list[Any]) -> tuple[Held, list[Any], list[Held]]:
        at = number
        if first.const != 0:
            at = c.b.node("Add", [number, low], DType.I64, index.name or "i")
        held = Held.whole(c.convert(at, DType.I64, dtype), dtype, ())
        results = t.region(frame, op.regions[0], [held, *values])
        return Held.number(True, DType.BOOL), results[:count], results[count:]

    results, stacks = loop(t, frame, op, carried, trips, None, initial, body)
    for value, made in zip(op.results[count:], stacks, strict=True):
        results.append(_stack(t, frame, value, made))
    return results


def _stack(t: Tracer, frame: Frame, value: Value, made: ir.Value) -> Held:
    """Stacked values, with their whole shape told: after no turn the runtime knows only some."""
    type_ = tensor(frame.subst.type(value.type))
    dtype = dtype_of(type_)
    told = t.c.b.node("Reshape", [made, t.c.sizes.vector(type_.dims)], dtype, value.name,
                      allowzero=1)  # fmt: skip
    return Held.whole(told, dtype, type_.dims)


def emit_static_for(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    attrs = substitute_attrs(op, frame.subst)
    start, stop = attrs["start"], attrs["stop"]
    values = t.operands(frame, op)
    region = op.regions[0]
    if start.constant is not None and stop.constant is not None:
        turns = range(start.constant, stop.constant)
        if len(turns) * weight(t, frame, region) <= UNROLLED:
            for k in turns:
                values = t.region(frame, region, [Held.number(k, DType.I64), *values])
            return values
    return _counted(t, frame, op, start, stop, values)


def _counted(
    t: Tracer, frame: Frame, op: Op, start: Dim, stop: Dim, initial: Sequence[Any]
) -> Sequence[Any]:
    c = t.c
    carried = Carried(t, frame, op, op.results)
    low = c.sizes.scalar(start)
    trips = c.sizes.scalar(stop - start)

    def body(number: ir.Value, values: list[Any]) -> tuple[Held, list[Any], list[Held]]:
        at = number
        if start.constant != 0:
            at = c.b.node("Add", [number, low], DType.I64, op.regions[0].params[0].name or "i")
        held = Held.whole(at, DType.I64, ())
        return Held.number(True, DType.BOOL), t.region(frame, op.regions[0], [held, *values]), []

    results, _ = loop(t, frame, op, carried, trips, None, initial, body)
    return results


def weight(t: Tracer, frame: Frame, region: Region) -> int:
    """About how many nodes a region becomes."""
    return _weight(t, frame.receiver, dict(frame.subs), region)


def _weight(t: Tracer, receiver: Path, subs: dict[Any, Path], region: Region) -> int:
    def path(ref: Any) -> Path:
        return (*(receiver if ref.root is None else subs[ref.root]), *ref.steps)

    total = 0
    for op in region.ops:
        if op.kind == "call":
            callee = t.functions[op.attrs["callee"]]
            to = op.attrs["receiver"]
            total += _weight(t, () if to is None else path(to), {}, callee.body)
        elif op.kind == "for_subs":
            each = elements(t, path(op.attrs["array"]), op)
            if each:
                inner = {**subs, op.attrs["var"]: each[0]}
                total += len(each) * _weight(t, receiver, inner, op.regions[0])
        else:
            total += 1 + sum(_weight(t, receiver, subs, inner) for inner in op.regions)
    return total


def emit_for_subs(t: Tracer, frame: Frame, op: Op) -> Sequence[Any]:
    values = t.operands(frame, op)
    for child in elements(t, frame.path(op.attrs["array"]), op):
        frame.subs[op.attrs["var"]] = child
        values = t.region(frame, op.regions[0], values)
    return values


# --- members and calls ------------------------------------------------------------------------------


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
    """What depends on no input, once in the main graph; without weights, worked out now."""
    b = t.c.b
    key = ("prepared", op.attrs["callee"], receiver)
    with b.outermost():
        found = b.recall(key)
        if found is None:
            callee = t.functions[op.attrs["callee"]]
            if op.attrs["receiver"] is None:
                found = [_constants(t, callee.result_types[0], t.prepared(callee), callee.name)]
            else:
                found = [t.call(callee, (), subst, receiver)]
            b.remember(key, found)
    return found[0]


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
    "while": emit_while,
    "for": emit_for,
    "static_for": emit_static_for,
    "for_subs": emit_for_subs,
    "param": emit_param,
    "state_read": emit_state_read,
    "state_write": emit_state_write,
    "call": emit_call,
}
