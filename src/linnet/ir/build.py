"""Making operations: a builder that infers result types and keeps a stack of open regions.

b = Builder()
with b.region([i, carried]) as step:
    step.give(b.emit("add", [carried, x]))
(last,) = b.emit_many("for", [first, stop, start], {"yields": 0}, regions=[step.region])
body = b.finish([last], params)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from linnet.diagnostics import InternalError, Span
from linnet.dims import Dim
from linnet.ir.core import NO_ATTRS, Attrs, Op, Region, Value
from linnet.ir.shapes import Equal, infer, structural
from linnet.types import AnyDType, TensorType, Type, scalar


class OpenRegion:
    """A region while it is filled; `region` is there once its `with` has ended."""

    def __init__(self, params: Sequence[Value]) -> None:
        self.params = tuple(params)
        self.ops: list[Op] = []
        self.results: tuple[Value, ...] = ()
        self._closed: Region | None = None

    def give(self, *results: Value) -> None:
        """Sets the region's results."""
        self.results = results

    def close(self) -> Region:
        self._closed = Region(self.params, tuple(self.ops), self.results)
        return self._closed

    @property
    def region(self) -> Region:
        if self._closed is None:
            raise InternalError("ir.build", "a region was asked for while it was open")
        return self._closed


class Builder:
    """Appends operations to the innermost open region.

    `equal` decides when two dimensions are one while types are inferred (a prover's, where the
    caller has facts); `span` is the place of operations that name none.
    """

    def __init__(self, *, equal: Equal = structural, span: Span | None = None) -> None:
        self.equal = equal
        self.span = span
        self._stack: list[OpenRegion] = [OpenRegion(())]

    @property
    def depth(self) -> int:
        """How many regions are open, the outermost not counted."""
        return len(self._stack) - 1

    def append(self, op: Op) -> None:
        self._stack[-1].ops.append(op)

    def emit(
        self,
        kind: str,
        operands: Sequence[Value] = (),
        attrs: Mapping[str, Any] = NO_ATTRS,
        *,
        type: Type | None = None,
        regions: Sequence[Region] = (),
        span: Span | None = None,
        name: str = "",
    ) -> Value:
        """Appends an operation with one result. A `type` that is given is taken as it is (the
        verifier looks at it); without one it is inferred."""
        types = None if type is None else (type,)
        results = self.emit_many(
            kind, operands, attrs, types=types, regions=regions, span=span, names=(name,)
        )
        if len(results) != 1:
            raise InternalError("ir.build", f"`{kind}` has {len(results)} results, not one", span)
        return results[0]

    def emit_many(
        self,
        kind: str,
        operands: Sequence[Value] = (),
        attrs: Mapping[str, Any] = NO_ATTRS,
        *,
        types: Sequence[Type] | None = None,
        regions: Sequence[Region] = (),
        span: Span | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Value, ...]:
        """Appends an operation and gives its results, however many."""
        span = self.span if span is None else span
        kept: Attrs = MappingProxyType(dict(attrs)) if attrs else NO_ATTRS
        operands, regions = tuple(operands), tuple(regions)
        if types is None:
            types = infer(
                kind, [v.type for v in operands], kept, regions=regions, equal=self.equal, span=span
            )
        results = tuple(
            Value(type_, names[k] if k < len(names) else "", span) for k, type_ in enumerate(types)
        )
        self.append(Op(kind, operands, results, kept, regions, span))
        return results

    @contextmanager
    def region(self, params: Sequence[Value] = ()) -> Iterator[OpenRegion]:
        """Opens a region; operations go into it until the `with` ends."""
        inner = OpenRegion(params)
        self._stack.append(inner)
        try:
            yield inner
        finally:
            self._stack.pop()
        inner.close()

    def finish(self, results: Sequence[Value] = (), params: Sequence[Value] = ()) -> Region:
        """The outermost region, with everything appended so far; the builder starts afresh."""
        if self.depth:
            raise InternalError("ir.build", "the body was finished inside an open region")
        outer = self._stack.pop()
        self._stack.append(OpenRegion(()))
        return Region(tuple(params), tuple(outer.ops), tuple(results))

    # --- the few operations that everyone makes ------------------------------------------------

    def const(self, value: int | float | bool, dtype: AnyDType, name: str = "") -> Value:
        return self.emit("const", (), {"value": value}, type=scalar(dtype), name=name)

    def dim(self, dim: Dim | int, dtype: AnyDType, name: str = "") -> Value:
        dim = Dim.of(dim) if isinstance(dim, int) else dim
        return self.emit("dim", (), {"dim": dim}, type=scalar(dtype), name=name)

    def cast(self, value: Value, dtype: AnyDType, name: str = "") -> Value:
        """`value` in `dtype`; itself when it is that already."""
        type_ = tensor_type(value)
        if type_.dtype == dtype:
            return value
        return self.emit("cast", (value,), type=type_.with_dtype(dtype), name=name)

    def broadcast(self, value: Value, axes: Sequence[int], to: TensorType, name: str = "") -> Value:
        """`value` with item i at result item `axes[i]`; itself when its shape is that already."""
        if tensor_type(value).shape == to.shape:
            return value
        return self.emit("broadcast", (value,), {"axes": tuple(axes)}, type=to, name=name)


def tensor_type(value: Value) -> TensorType:
    """The value's type, which has to be a tensor's."""
    if not isinstance(value.type, TensorType):
        raise InternalError("ir.build", f"a tensor is needed, not {value.type}", value.span)
    return value.type
