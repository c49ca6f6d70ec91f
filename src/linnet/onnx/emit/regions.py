"""Regions as graphs: which states they write, and how values come out of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.ir import Op, Region
from linnet.onnx.emit.dtypes import dtype_of
from linnet.onnx.emit.graph import Scope
from linnet.onnx.emit.held import Held
from linnet.onnx.emit.parts import rebuilt
from linnet.onnx.emit.sizes import shape_of
from linnet.onnx.emit.trace import Frame, Path, Tracer
from linnet.types import TensorType, Type


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


def taken(
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
