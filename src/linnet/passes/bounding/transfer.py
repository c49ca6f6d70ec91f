"""What each pure operation makes of attained bounds.

Rows that are not here give no bounds: whoever asks falls back on the host expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from linnet.dims import Dim, DimError, floordiv
from linnet.ir.core import Attrs
from linnet.passes.bounding.values import NO_AXES, UNKNOWN, Axis, Known, Leaves, LoopAxis
from linnet.types import DType, TensorType, Type


@dataclass(frozen=True, slots=True)
class Case:
    """An operation with its attributes and types in the entry's terms."""

    kind: str
    operands: tuple[Known, ...]
    attrs: Attrs
    inputs: tuple[Type, ...]
    result: TensorType
    leaves: Leaves

    def is_size(self, dim: Dim) -> bool:
        """At least 0 by its form: sums and products of constants and sizes, no inputs."""
        return all(c >= 0 for c in dim.terms.values()) and not self.leaves.names(dim)


Transfer = Callable[[Case], Known]
ONE = Dim.of(1)


MAX_PARTS = 16


def transfer(case: Case) -> Known:
    """Bounds of the result, without its host expression."""
    rule = _RULES.get(case.kind)
    if rule is None:
        return UNKNOWN
    try:
        return replace(rule(case), parts=_parts(case, rule))
    except DimError:  # arithmetic past the cap: nothing is known
        return UNKNOWN


def _parts(case: Case, rule: Transfer) -> tuple[Known, ...]:
    """The result's parts: a concatenation's operands, or what becomes of the one operand's."""
    if case.kind == "concat":
        every = tuple(part for x in case.operands for part in (x.parts or (x,)))
        return every if len(every) <= MAX_PARTS else ()
    split = [k for k, x in enumerate(case.operands) if x.parts]
    if len(split) != 1:
        return ()
    before, after = case.operands[: split[0]], case.operands[split[0] + 1 :]
    parts = case.operands[split[0]].parts
    return tuple(rule(replace(case, operands=(*before, part, *after))) for part in parts)


def _const(case: Case) -> Known:
    value = case.attrs["value"]
    if isinstance(value, int) and not isinstance(value, bool) and _is_integer(case.result):
        return Known(Dim.of(value), Dim.of(value), dense=True)
    return UNKNOWN


def _dim(case: Case) -> Known:
    if not _is_integer(case.result):
        return UNKNOWN
    return Known(case.attrs["dim"], case.attrs["dim"], dense=True)


def _iota(case: Case) -> Known:
    (extent,) = case.result.shape
    if not isinstance(extent, Dim):
        return UNKNOWN
    return Known(Dim.of(0), extent - ONE, frozenset((0,)), dense=True)


def _cast(case: Case) -> Known:
    """Widening keeps every value; anything else may not."""
    (x,), (source,) = case.operands, case.inputs
    if not isinstance(source, TensorType) or not isinstance(source.dtype, DType):
        return UNKNOWN
    target = case.result.dtype
    if not isinstance(target, DType) or not (source.dtype.is_integer and target.is_integer):
        return UNKNOWN
    low, high = target.integer_range
    least, most = source.dtype.integer_range
    keeps = low <= least and most <= high
    return replace(x, host=None) if keeps or _fits(case, x, low, high) else UNKNOWN


def _fits(case: Case, x: Known, low: int, high: int) -> bool:
    """Whether bounds survive a narrowing cast: constants are looked at, sizes are taken to fit."""
    bounds = [bound for bound in (x.lo, x.hi) if bound is not None]
    constants = [bound.constant for bound in bounds if bound.constant is not None]
    return (
        len(bounds) == 2
        and all(low <= constant <= high for constant in constants)
        and not any(map(case.leaves.names, bounds))
    )


def _add(case: Case) -> Known:
    """Independent operands take their extremes together."""
    a, b = case.operands
    if a.axes & b.axes:
        return UNKNOWN
    lo = None if a.lo is None or b.lo is None else a.lo + b.lo
    hi = None if a.hi is None or b.hi is None else a.hi + b.hi
    dense = a.dense and b.dense
    return Known(lo, hi, a.axes | b.axes, dense)


def _neg(case: Case) -> Known:
    (x,) = case.operands
    lo = None if x.hi is None else -x.hi
    hi = None if x.lo is None else -x.lo
    return Known(lo, hi, x.axes, x.dense)


def _sub(case: Case) -> Known:
    a, b = case.operands
    negated = _neg(replace(case, operands=(b,)))
    return _add(replace(case, operands=(a, negated)))


def _mul(case: Case) -> Known:
    """By a number known not to be negative: a constant, or a size."""
    a, b = case.operands
    for x, factor in ((a, b.exact), (b, a.exact)):
        if factor is not None and case.is_size(factor):
            lo = None if x.lo is None else x.lo * factor
            hi = None if x.hi is None else x.hi * factor
            return Known(lo, hi, x.axes, x.dense and factor == ONE)
    return UNKNOWN


def _div(case: Case) -> Known:
    """Rounding down and toward zero agree from 0 on, which is what an upper bound is about."""
    x, divisor = case.operands[0], case.operands[1].exact
    if x.hi is None or divisor is None or not case.is_size(divisor):
        return UNKNOWN
    return Known(None, floordiv(x.hi, divisor), x.axes)


def _broadcast(case: Case) -> Known:
    (x,), axes = case.operands, case.attrs["axes"]
    moved = {axis: axes[axis] for axis in x.axes if isinstance(axis, int)}
    return _moved(x, moved)


def _permute(case: Case) -> Known:
    (x,), order = case.operands, case.attrs["order"]
    return _moved(x, {axis: order.index(axis) for axis in x.axes if isinstance(axis, int)})


def _moved(x: Known, places: dict[int, int]) -> Known:
    """`x` with tensor axes renumbered; loops stay."""
    axes: frozenset[Axis] = frozenset(
        axis if isinstance(axis, LoopAxis) else places[axis] for axis in x.axes
    )
    return replace(x, axes=axes, host=None)


def _reshape(case: Case) -> Known:
    (x,) = case.operands
    loops: frozenset[Axis] = frozenset(axis for axis in x.axes if isinstance(axis, LoopAxis))
    if loops == x.axes:
        return replace(x, host=None)
    every: frozenset[Axis] = frozenset(
        axis for axis, item in enumerate(case.result.shape) if item != ONE
    )
    return replace(x, axes=loops | every, host=None)


def _slice(case: Case) -> Known:
    """Bounds stay where the sliced axes are not those the value varies along."""
    (x,) = case.operands
    cut = {axis for axis, bound in enumerate(case.attrs["bounds"]) if bound is not None}
    return UNKNOWN if cut & x.axes else replace(x, host=None)


def _gather(case: Case) -> Known:
    """A view keeps its bounds; so does a look-up that reaches every position of the axis."""
    x, type_ = case.operands[0], case.inputs[0]
    if not isinstance(type_, TensorType):
        return UNKNOWN
    places: dict[int, frozenset[Axis]] = {}
    for axis, (how, number) in enumerate(case.attrs["source"]):
        if how == "axis":
            places[axis] = frozenset((number,))
        elif axis in x.axes:
            index = case.operands[1 + number]
            if not _covers(index, type_.shape[axis]):
                return UNKNOWN
            names = case.attrs["index_axes"][number]
            places[axis] = frozenset(names[a] if isinstance(a, int) else a for a in index.axes)
    used: list[Axis] = [a for axis in x.axes if isinstance(axis, int) for a in places[axis]]
    loops = [axis for axis in x.axes if isinstance(axis, LoopAxis)]
    if len(set(used) | set(loops)) != len(used) + len(loops):  # a diagonal, or axes run together
        return UNKNOWN
    return replace(x, axes=frozenset([*used, *loops]), dense=False, host=None)


def _covers(index: Known, extent: object) -> bool:
    """Whether an index certainly takes every position of an axis."""
    if not index.dense or index.lo is None or index.hi is None or not isinstance(extent, Dim):
        return False
    return index.lo == Dim.of(0) and index.hi == extent - ONE


def _extreme(case: Case) -> Known:
    """The largest (smallest) over every axis it varies along is its upper (lower) bound."""
    (x,), op = case.operands, case.attrs["op"]
    if op not in ("max", "min") or not x.axes <= set(case.attrs["axes"]):
        return UNKNOWN
    bound = x.hi if op == "max" else x.lo
    return Known(bound, bound, NO_AXES, dense=True)


def _is_integer(type_: TensorType) -> bool:
    return isinstance(type_.dtype, DType) and type_.dtype.is_integer


_RULES: dict[str, Transfer] = {
    "const": _const,
    "dim": _dim,
    "iota": _iota,
    "cast": _cast,
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _mul,
    "div": _div,
    "concat": lambda case: UNKNOWN,  # its parts say what is known
    "broadcast": _broadcast,
    "permute": _permute,
    "reshape": _reshape,
    "slice": _slice,
    "gather": _gather,
    "reduce": _extreme,
}
