"""Library operations whose bodies pass over what lies outside, and what their callers mean.

A write past the end of a cache writes nothing, so the bodies of `std.nn.cache` hold no index that
could be wrong; a caller that writes there has made a mistake all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from linnet.dims import Dim, Symbol
from linnet.ir.core import Function, Op, Value
from linnet.passes.bounding.analysis import Analysis, Frame
from linnet.passes.bounding.values import Known
from linnet.types import DType, TensorType

# Gives False when it cannot tell, and the body is followed instead.
OriginRule = Callable[[Analysis, Frame, Function, Op], bool]
ONE = Dim.of(1)
# What a "pages" expression gives: the smallest and the largest place.
PLACES = TensorType((Dim.of(2),), DType.I64)


class _Write:
    """The parameters of one write: cache `[B, H, S, D]`, value `[_, H, N, D]`, and where."""

    def __init__(self, analysis: Analysis, frame: Frame, callee: Function, op: Op) -> None:
        self.analysis, self.frame, self.op = analysis, frame, op
        self.params = {param.name: param.value for param in callee.params}

    def index(self, name: str, axis: int, used: tuple[Dim, ...] = ()) -> None:
        """Parameter `name` is a place on the cache's `axis`."""
        extent, type_ = (
            _extent(self.frame, self.params["cache"], axis),
            self.frame.type(self.params[name]),
        )
        if extent is None or not isinstance(type_, TensorType):
            return
        sizes = [item for item in type_.shape if isinstance(item, Dim)]
        known = self.frame.known(self.params[name])
        self.analysis.record(self.op, known, extent, [*sizes, *used])

    def span(self, name: str) -> None:
        """`N` places from the scalar `name` on the cache's third axis."""
        extent = _extent(self.frame, self.params["cache"], 2)
        count = _extent(self.frame, self.params["value"], 2)
        type_ = self.frame.type(self.params[name])
        if extent is None or count is None or not isinstance(type_, TensorType):
            return
        first = self.frame.known(self.params[name])
        more = self.analysis.number(count - ONE, type_)
        last = self.analysis.scalar_op("add", (first, more), type_)
        if first.lo is not None and last.hi is not None:
            both = Known(first.lo, last.hi, first.axes | last.axes)
            self.analysis.record(self.op, both, extent, [count])
            return
        for known in (first, last):
            self.analysis.record(self.op, replace(known), extent, [count])


def _write_span(analysis: Analysis, frame: Frame, callee: Function, op: Op) -> bool:
    """`write_at(cache, value, at)` and `write_span(cache, value, at)`."""
    _Write(analysis, frame, callee, op).span("at")
    return True


def _write_rows(analysis: Analysis, frame: Frame, callee: Function, op: Op) -> bool:
    _Write(analysis, frame, callee, op).index("at", 2)
    return True


def _write_slots(analysis: Analysis, frame: Frame, callee: Function, op: Op) -> bool:
    write = _Write(analysis, frame, callee, op)
    write.index("slots", 0)
    write.span("at")
    return True


def _write_tokens(analysis: Analysis, frame: Frame, callee: Function, op: Op) -> bool:
    write = _Write(analysis, frame, callee, op)
    write.index("rows", 0)
    write.index("at", 2)
    return True


def _paged(analysis: Analysis, frame: Frame, callee: Function, op: Op) -> bool:
    """The places of the pool that `paged_attention` and `paged_prefill_attention` read.

    Their bodies say the same, a token and a place at a time.
    """
    params = {param.name: param.value for param in callee.params}
    size, names = _generic(frame, callee, "Size"), ("table", "positions", "rows")
    extent, rows = _extent(frame, params["k"], 2), _extent(frame, params["table"], 0)
    if size is None or extent is None or rows is None:
        return False
    known = [frame.known(params[name]) for name in names if name in params]
    if "rows" in params:
        tokens = _extent(frame, params["rows"], 0)
        analysis.record(op, known[-1], rows, [] if tokens is None else [tokens])
    hosts = tuple(value.host for value in known if value.host is not None)
    if len(hosts) == len(known):
        host = analysis.interner.make("pages", hosts, {"size": size}, PLACES)
        analysis.record(op, Known(host=host), extent, [])
    return True


def _generic(frame: Frame, callee: Function, name: str) -> Dim | None:
    """The callee's Dim generic of this name, which specialising may have taken away."""
    for generic in callee.generics:
        if generic.name == name and isinstance(generic.var, Symbol):
            return frame.subst.dim(Dim.of(generic.var))
    return None


def _extent(frame: Frame, value: Value, axis: int) -> Dim | None:
    type_ = frame.type(value)
    if not isinstance(type_, TensorType) or len(type_.shape) <= axis:
        return None
    item = type_.shape[axis]
    return item if isinstance(item, Dim) else None


ORIGINS: dict[str, OriginRule] = {
    "std.nn.cache::write_at": _write_span,
    "std.nn.cache::write_span": _write_span,
    "std.nn.cache::write_rows": _write_rows,
    "std.nn.cache::write_slots": _write_slots,
    "std.nn.cache::write_tokens": _write_tokens,
    "std.nn.attention::paged_attention": _paged,
    "std.nn.attention::paged_prefill_attention": _paged,
}
