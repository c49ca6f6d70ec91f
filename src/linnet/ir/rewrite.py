"""The one place that rebuilds functions.

A pass gives a `transform`, called for every operation in program order:

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if op.kind != "neg":
            return None                                   # copied, its regions rewritten
        return [rw.builder.emit("sub", [zero, *rw.operands(op)])]

What it returns stands for the results from there on; an empty tuple drops an operation without
results. Operations that it makes go through `rw.builder`, and are not transformed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from linnet.diagnostics import InternalError
from linnet.ir.build import Builder
from linnet.ir.core import Attrs, Function, Grad, Op, Param, Ref, Region, SubVar, Value
from linnet.ir.renumber import substitute_attrs
from linnet.ir.shapes import Equal, structural
from linnet.ir.walk import has_effects, walk_regions
from linnet.types import Subst, Type

Transform = Callable[["Rewriter", Op], Sequence[Value] | None]


class Rewriter:
    """Copies regions and functions, changing what its transform changes.

    `values` says what stands for a value of the original (itself, when it is not there). With
    `fresh` every copy gets values of its own, as it must where the original stays in use or is
    copied twice; without it, results whose type is unchanged keep their identity, so that facts
    a pass holds about them stay. `subst` is applied to every type and attribute.
    """

    def __init__(
        self,
        transform: Transform | None = None,
        *,
        values: Mapping[Value, Value] | None = None,
        subst: Subst | None = None,
        fresh: bool = True,
        equal: Equal = structural,
    ) -> None:
        self.transform = transform
        self.values: dict[Value, Value] = dict(values or {})
        self.sub_vars: dict[SubVar, Ref] = {}
        self.self_ref: Ref | None = None  # what the original's own block is here; None: itself
        self.subst = subst
        self.fresh = fresh
        self.builder = Builder(equal=equal)

    # --- what the copy has in place of the original's ------------------------------------------

    def value(self, value: Value) -> Value:
        return self.values.get(value, value)

    def operands(self, op: Op) -> tuple[Value, ...]:
        return tuple(map(self.value, op.operands))

    def type(self, type_: Type) -> Type:
        return type_ if self.subst is None else self.subst.type(type_)

    def ref(self, ref: Ref) -> Ref:
        root = self.self_ref if ref.root is None else self.sub_vars.get(ref.root)
        return ref if root is None else Ref(root.root, (*root.steps, *ref.steps))

    def attrs(self, op: Op) -> Attrs:
        """The attributes with `subst` applied and references led to where they go here."""
        attrs = op.attrs if self.subst is None else substitute_attrs(op, self.subst)
        refs = {k: self.ref(v) for k, v in attrs.items() if isinstance(v, Ref)}
        if op.kind == "call" and attrs.get("receiver") is None:
            refs.pop("receiver", None)
        changed = {k: v for k, v in refs.items() if v != attrs[k]}
        return MappingProxyType({**attrs, **changed}) if changed else attrs

    def new_value(self, value: Value) -> Value:
        """The copy's value for one that the original defines here."""
        type_ = self.type(value.type)
        keep = not self.fresh and type_ == value.type
        new = value if keep else Value(type_, value.name, value.span)
        self.values[value] = new
        return new

    # --- copying ---------------------------------------------------------------------------------

    def op(self, op: Op) -> None:
        """Transforms or copies one operation into the builder's open region."""
        given = None if self.transform is None else self.transform(self, op)
        if given is None:
            self.copy(op)
            return
        if len(given) != len(op.results):
            raise InternalError(
                "ir.rewrite", f"{len(given)} values stand for `{op.kind}`'s", op.span
            )
        self.values.update(zip(op.results, given, strict=True))

    def copy(
        self,
        op: Op,
        *,
        kind: str | None = None,
        operands: Sequence[Value] | None = None,
        attrs: Attrs | None = None,
        regions: Sequence[Region] | None = None,
    ) -> tuple[Value, ...]:
        """Appends a copy of `op`, parts of it replaced; gives its results."""
        if attrs is None:
            attrs = self.attrs(op)
            if op.kind == "for_subs" and self.fresh:
                var = SubVar(attrs["var"].name)
                self.sub_vars[attrs["var"]] = Ref(var, ())
                attrs = MappingProxyType({**attrs, "var": var})
        taken = self.operands(op) if operands is None else tuple(operands)
        inner = tuple(map(self.region, op.regions)) if regions is None else tuple(regions)
        results = tuple(map(self.new_value, op.results))
        self.builder.append(Op(kind or op.kind, taken, results, attrs, inner, op.span))
        return results

    def region(self, region: Region) -> Region:
        """A copy of a region, its parameters included."""
        with self.builder.region(tuple(map(self.new_value, region.params))) as inner:
            for op in region.ops:
                self.op(op)
            inner.give(*map(self.value, region.results))
        return inner.region

    def inline(self, region: Region, args: Sequence[Value]) -> tuple[Value, ...]:
        """Copies a region's operations into the open region, `args` for its parameters."""
        self.values.update(zip(region.params, args, strict=True))
        for op in region.ops:
            self.op(op)
        return tuple(map(self.value, region.results))

    def function(self, function: Function) -> Function:
        """The function rebuilt, its gradient with it; `subst` does not touch its generics."""
        params = tuple(Param(p.name, self.new_value(p.value), p.default) for p in function.params)
        body = self._outer(function.body)
        grad = None if function.grad is None else self.grad(function.grad)
        return replace(function, params=params, body=body, grad=grad)

    def grad(self, grad: Grad) -> Grad:
        """A gradient rebuilt; it sees nothing of the body beside it."""
        params = tuple(map(self.new_value, grad.params))
        return Grad(params, self._outer(grad.body))

    def _outer(self, region: Region) -> Region:
        # A body's own params repeat the function's, whose copies exist by now.
        params = tuple(self.values.get(p) or self.new_value(p) for p in region.params)
        with self.builder.region(params) as inner:
            for op in region.ops:
                self.op(op)
            inner.give(*map(self.value, region.results))
        return inner.region


def rewrite(function: Function, transform: Transform, *, equal: Equal = structural) -> Function:
    """The function with `transform` applied; values it leaves alone keep their identity."""
    return Rewriter(transform, fresh=False, equal=equal).function(function)


def clone_region(
    region: Region,
    mapping: Mapping[Value, Value] | None = None,
    transform: Transform | None = None,
    *,
    subst: Subst | None = None,
) -> Region:
    """A copy with fresh values. `mapping` gives what stands for values from outside it."""
    return Rewriter(transform, values=mapping, subst=subst).region(region)


def drop_dead(function: Function, call_has_effects: Callable[[Op], bool] | None = None) -> Function:
    """Without operations that have no effects and whose results nothing uses.

    A state read is an effect only in its order: an unused one goes too. The same function comes
    back when nothing was dead.
    """
    body, grad = _without_dead(function.body, call_has_effects), function.grad
    if grad is not None:
        kept = _without_dead(grad.body, call_has_effects)
        grad = grad if kept is grad.body else Grad(grad.params, kept)
    if body is function.body and grad is function.grad:
        return function
    return replace(function, body=body, grad=grad)


def _without_dead(region: Region, calls: Callable[[Op], bool] | None) -> Region:
    # Live values of the whole tree grow from its results upward; values are unique, so one set.
    live = set(region.results)
    return _sweep(region, live, calls)


def _sweep(region: Region, live: set[Value], calls: Callable[[Op], bool] | None) -> Region:
    kept: list[Op] = []
    for op in reversed(region.ops):
        needed = any(value in live for value in op.results)
        if not needed and (op.kind == "state_read" or not has_effects(op, calls)):
            continue
        if op.regions:
            for inner in op.regions:
                live.update(inner.results)
            swept = tuple(_sweep(inner, live, calls) for inner in reversed(op.regions))[::-1]
            if any(a is not b for a, b in zip(swept, op.regions, strict=True)):
                op = replace(op, regions=swept)
        live.update(op.operands)
        kept.append(op)
    if len(kept) == len(region.ops) and all(
        a is b for a, b in zip(reversed(kept), region.ops, strict=True)
    ):
        return region
    return replace(region, ops=tuple(reversed(kept)))


def count_ops(function: Function) -> int:
    """How many operations a function holds, nested ones too."""
    return sum(len(region.ops) for region in walk_regions(function.body))
