"""Elementwise operations on repeated values, done before repeating them.

    op(broadcast(a), broadcast(b))   ==   broadcast(op(a', b'))

where a' and b' are a and b over the axes that at least one of them runs along. The same values to
the bit, on fewer elements; a mask over keys, say, is compared once and not for every head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linnet.ir import OPS, Op, Value
from linnet.ir.build import Builder
from linnet.types import TensorType

_GROUPS = frozenset({"unary", "binary", "compare", "select"})


def narrowed(
    op: Op, operands: Sequence[Value], defs: Mapping[Value, Op], builder: Builder
) -> tuple[list[Op], Value] | None:
    """The operations made in `builder`, and the value that stands for `op`'s; None where every
    axis is run along by some operand."""
    if OPS[op.kind].group not in _GROUPS or not isinstance(op.result.type, TensorType):
        return None
    rank = len(op.result.type.shape)
    sources = [defs.get(value) for value in operands]
    if rank == 0 or any(s is None or s.kind != "broadcast" for s in sources):
        return None
    found = [s for s in sources if s is not None]
    if not all(map(_repeats_whole_axes, found)):
        return None
    used = sorted({axis for s in found for axis in s.attrs["axes"]})
    if len(used) == rank:
        return None
    return _build(op, found, used, builder)


def _repeats_whole_axes(broadcast: Op) -> bool:
    """Whether each axis of its operand has the result's extent: none is stretched from 1."""
    source, result = broadcast.operands[0].type, broadcast.result.type
    if not isinstance(source, TensorType) or not isinstance(result, TensorType):
        return False
    places = broadcast.attrs["axes"]
    return all(source.shape[k] == result.shape[axis] for k, axis in enumerate(places))


def _build(
    op: Op, sources: Sequence[Op], used: Sequence[int], builder: Builder
) -> tuple[list[Op], Value]:
    result = op.result
    assert isinstance(result.type, TensorType)
    shape = tuple(result.type.shape[axis] for axis in used)
    made: list[Op] = []

    def emit(kind: str, inputs: Sequence[Value], attrs: dict[str, object], type_: TensorType,
             name: str = "") -> Value:  # fmt: skip
        value = builder.emit(kind, inputs, attrs, type=type_, span=op.span, name=name)
        made.append(Op(kind, tuple(inputs), (value,), attrs, (), op.span))
        return value

    small: list[Value] = []
    for source in sources:
        (inner,) = source.operands
        assert isinstance(inner.type, TensorType)
        if inner.type.shape != shape:
            axes = tuple(used.index(axis) for axis in source.attrs["axes"])
            inner = emit("broadcast", [inner], {"axes": axes}, inner.type.with_shape(shape))
        small.append(inner)
    core = emit(op.kind, small, dict(op.attrs), result.type.with_shape(shape), result.name)
    return made, emit("broadcast", [core], {"axes": tuple(used)}, result.type, result.name)
