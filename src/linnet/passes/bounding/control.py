"""Control flow and calls, as the analysis of index bounds follows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from linnet.dims import Dim, fresh_symbol
from linnet.ir.core import GenericVar, Op, Region
from linnet.passes.bounding.analysis import MAX_DEPTH, Analysis, Control, Frame, could_index
from linnet.passes.bounding.origins import ORIGINS
from linnet.passes.bounding.values import (
    UNKNOWN,
    Abstract,
    Guard,
    Held,
    Known,
    LoopAxis,
    Missing,
)
from linnet.types import GenericArg, Subst, TensorType

CONTROL: dict[str, Control] = {}
ONE = Dim.of(1)


def control(*kinds: str) -> Callable[[Control], Control]:
    """Registers how some rows are followed."""

    def register(function: Control) -> Control:
        CONTROL.update(dict.fromkeys(kinds, function))
        return function

    return register


def _operands(frame: Frame, op: Op) -> list[Abstract]:
    return [frame.values.get(value, UNKNOWN) for value in op.operands]


def _unknown(op: Op) -> tuple[Abstract, ...]:
    return (UNKNOWN,) * len(op.results)


@control("call")
def _call(analysis: Analysis, frame: Frame, op: Op) -> tuple[Abstract, ...]:
    callee = analysis.functions.get(op.attrs["callee"])
    operands = _operands(frame, op)
    matters = any(map(analysis.depends, operands)) or any(could_index(v.type) for v in op.results)
    if callee is None or not matters or frame.depth >= MAX_DEPTH:
        return _unknown(op)
    args = tuple(map(frame.subst.arg, op.attrs["generics"]))
    pairs: dict[GenericVar, GenericArg] = {
        generic.var: arg for generic, arg in zip(callee.generics, args, strict=True)
    }
    params = [param.value for param in callee.params]
    inner = Frame(Subst.of(pairs), dict(zip(params, operands, strict=True)), frame.depth + 1)
    rule = ORIGINS.get(analysis.origins.get(callee.name, callee.name))
    if rule is not None and rule(analysis, inner, callee, op):
        return _unknown(op)
    results = analysis.region(inner, callee.body, tuple(operands))
    return results if len(results) == len(op.results) else _unknown(op)


@control("if")
def _if(analysis: Analysis, frame: Frame, op: Op) -> tuple[Abstract, ...]:
    (condition,) = (frame.known(value) for value in op.operands)
    if condition.host is None:
        return _unknown(op)
    before = analysis.guards
    sides: list[tuple[Abstract, ...]] = []
    for region, expected in zip(op.regions, (True, False), strict=True):
        analysis.guards = (*before, Guard(condition.host, expected))
        sides.append(analysis.region(frame, region, ()))
        analysis.guards = before
    merged = zip(op.results, *sides, strict=True)
    return tuple(
        _merge(analysis, condition, then, other, frame.type(result))
        for result, then, other in merged
    )


def _merge(
    analysis: Analysis, condition: Known, then: Abstract, other: Abstract, type_: object
) -> Abstract:
    """One of two values, the condition deciding which."""
    if then is other:
        return then
    hosts = [side.host for side in (condition, then, other) if isinstance(side, Known)]
    known = tuple(host for host in hosts if host is not None)
    if len(known) < 3 or not isinstance(type_, TensorType):
        return UNKNOWN
    return Known(host=analysis.interner.make("if", known, {}, type_))


@control("match_optional")
def _match_optional(analysis: Analysis, frame: Frame, op: Op) -> tuple[Abstract, ...]:
    (subject,) = _operands(frame, op)
    match subject:
        case Held(inner):
            return analysis.region(frame, op.regions[0], (inner,))
        case Missing():
            return analysis.region(frame, op.regions[1], ())
        case _:
            return _unknown(op)


@control("match_enum", "match_sub")
def _either(analysis: Analysis, frame: Frame, op: Op) -> tuple[Abstract, ...]:
    """Which side runs is not known: none is followed."""
    return _unknown(op)


@control("for_subs")
def _for_subs(analysis: Analysis, frame: Frame, op: Op) -> tuple[Abstract, ...]:
    """The first element; what it leaves alone every element does."""
    start = _operands(frame, op)
    return _settled(op.regions[0], analysis.region(frame, op.regions[0], start), start, 0)


def _settled(
    region: Region, results: Sequence[Abstract], start: Sequence[Abstract], skip: int
) -> tuple[Abstract, ...]:
    """After a loop: a carried value that the region hands on as it got it, else nothing."""
    kept = zip(region.results, results, region.params[skip:], start, strict=False)
    return tuple(
        initial if result is param or given is initial else UNKNOWN
        for result, given, param, initial in kept
    )


@control("while")
def _while(analysis: Analysis, frame: Frame, op: Op) -> tuple[Abstract, ...]:
    start = _operands(frame, op)
    condition, step = op.regions
    (going,) = analysis.region(frame, condition, start)
    if not isinstance(going, Known) or going.host is None:
        return _settled(step, (UNKNOWN,) * len(start), start, 0)
    before = analysis.guards
    analysis.guards = (*before, Guard(going.host, True))
    results = analysis.region(frame, step, start)
    analysis.guards = before
    return _settled(step, results, start, 0)


@control("for", "static_for")
def _for(analysis: Analysis, frame: Frame, op: Op) -> tuple[Abstract, ...]:
    operands = _operands(frame, op)
    if op.kind == "for":
        first, stop = (frame.known(value) for value in op.operands[:2])
        carried = operands[2:]
    else:
        index_type = frame.type(op.regions[0].params[0])
        if not isinstance(index_type, TensorType):
            return _unknown(op)
        bounds = (frame.subst.dim(op.attrs[end]) for end in ("start", "stop"))
        first, stop = (analysis.number(bound, index_type) for bound in bounds)
        carried = operands
    results: tuple[Abstract, ...] = (UNKNOWN,) * len(carried)
    if first.exact is not None and stop.exact is not None:
        results = _rounds(analysis, frame, op.regions[0], first, stop, carried)
    settled = _settled(op.regions[0], results, carried, 1)
    return (*settled, *(UNKNOWN,) * (len(op.results) - len(settled)))


def _rounds(
    analysis: Analysis,
    frame: Frame,
    region: Region,
    first: Known,
    stop: Known,
    carried: Sequence[Abstract],
) -> tuple[Abstract, ...]:
    """Follows a loop over known numbers: all rounds at once, then the first with its values."""
    if first.exact is None or stop.exact is None:
        return ()
    before, count = analysis.positive, stop.exact - first.exact
    if count.constant is not None and count.constant <= 0:
        return tuple(carried)
    analysis.positive = (*before, count) if count.constant is None else before
    last = stop.exact - ONE
    loop = LoopAxis()
    every = Known(first.exact, last, frozenset((loop,)), dense=True)
    steps = _steps(analysis, frame, region, carried)
    ranges = [_range(value, step, count, loop) for value, step in zip(carried, steps, strict=True)]
    start = len(analysis.found)
    analysis.region(frame, region, (every, *ranges))
    middle = len(analysis.found)
    results = analysis.region(frame, region, (replace(first, dense=True), *carried))
    analysis.positive = before
    # What all rounds say about an index the first round need not say again.
    told = {(id(f.op), f.extent) for f in analysis.found[start:middle] if f.index.bounded}
    analysis.found[middle:] = [
        f for f in analysis.found[middle:] if (id(f.op), f.extent) not in told
    ]
    return results


def _steps(
    analysis: Analysis, frame: Frame, region: Region, carried: Sequence[Abstract]
) -> list[int | None]:
    """How much each carried integer grows a round: 0 for what stays, None for anything else."""
    probes: list[Abstract] = []
    for value in carried:
        if isinstance(value, Known) and value.exact is not None:
            symbol = Dim.of(fresh_symbol("carried"))
            probes.append(Known(symbol, symbol, dense=True))
        else:
            probes.append(UNKNOWN)
    if not any(isinstance(p, Known) and p.lo is not None for p in probes):
        return [None] * len(carried)
    analysis.muted += 1
    results = analysis.region(frame, region, (UNKNOWN, *probes))
    analysis.muted -= 1
    return [_growth(p, r) for p, r in zip(probes, results, strict=False)]


def _growth(probe: Abstract, result: Abstract) -> int | None:
    if not isinstance(probe, Known) or not isinstance(result, Known):
        return None
    if probe.exact is None or result.exact is None:
        return None
    return (result.exact - probe.exact).constant


def _range(value: Abstract, step: int | None, count: Dim, loop: LoopAxis) -> Abstract:
    """A carried value over all rounds: from its first to its last."""
    if step == 0:
        return value
    if step is None or not isinstance(value, Known) or value.exact is None:
        return UNKNOWN
    start, end = value.exact, value.exact + (count - ONE) * Dim.of(step)
    lo, hi = (start, end) if step > 0 else (end, start)
    return Known(lo, hi, frozenset((loop,)), dense=abs(step) == 1)
