"""Loops: over child blocks written out, over sizes written out or kept, and those of run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from linnet.dims import Dim
from linnet.ir import Op, Region, Value
from linnet.ir.renumber import substitute_attrs
from linnet.onnx.emit.dtypes import ONNX, dtype_of, tensor
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.parts import flat, leaves
from linnet.onnx.emit.regions import elements, leave, taken, writes
from linnet.onnx.emit.sizes import shape_of
from linnet.onnx.emit.trace import Frame, Path, Tracer
from linnet.types import DType

UNROLLED = 20_000  # nodes, above which a counted loop stays a loop


class Carried:
    """What a loop carries: the program's values, then the states it writes."""

    def __init__(self, t: Tracer, frame: Frame, op: Op, values: Sequence[Value]) -> None:
        self.t = t
        self.types = [frame.subst.type(v.type) for v in values]
        self.states = writes(t, frame, op.regions)
        self.leaves = [leaf for type_ in self.types for leaf in leaves(type_)]
        self.leaves += [t.members.info(path).type for path in self.states]

    def start(self, values: Sequence[Any]) -> list[Held]:
        parts = [h for t_, v in zip(self.types, values, strict=True) for h in flat(t_, v)]
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
        return taken(self.t, self.types, self.states, self.leaves, inputs)

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
    graph = ir.Graph([number, flag, *inputs], outputs, nodes=scope.nodes, name="body")
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
