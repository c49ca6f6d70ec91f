"""simplify: rewrites that give the same result to the bit.

Needs specialised functions. Guarantees the same values; scalar operations on constants are folded
(rounded as their dtype rounds), look-ups in tuples just made are resolved, decided branches taken,
and views that change nothing or undo each other are gone. What becomes unused is left for `drop`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from linnet.dims import Dim
from linnet.ir import Function, Op, Value
from linnet.ir.rewrite import Rewriter
from linnet.passes.fold import folded
from linnet.passes.module import Module
from linnet.passes.narrow import narrowed
from linnet.types import DType, TensorType

Found = Sequence[Value] | None


def simplify(module: Module) -> Module:
    """Every function simplified, its gradient too."""
    return module.with_functions(
        {name: simplify_function(function) for name, function in module.functions.items()}
    )


def simplify_function(function: Function) -> Function:
    return _Simplifier().run(function)


class _Simplifier:
    """One function's rewriting; `defs` tells what made each value of the copy."""

    def __init__(self) -> None:
        self.defs: dict[Value, Op] = {}
        self.rw = Rewriter(self.transform, fresh=False)

    def run(self, function: Function) -> Function:
        return self.rw.function(function)

    def transform(self, rw: Rewriter, op: Op) -> Found:
        operands = rw.operands(op)
        number = folded(op, operands, self.defs)
        if number is not None:
            return self.emit("const", (), {"value": number}, op)
        small = narrowed(op, operands, self.defs, rw.builder)
        if small is not None:
            inner, value = small
            self.defs.update((each.result, each) for each in inner)
            return [value]
        rule = _RULES.get(op.kind)
        if rule is not None:
            found = rule(self, op, operands)
            if found is not None:
                return found
        results = rw.copy(op)
        # The copy is the last operation of the open region; it is found through its results.
        made = Op(op.kind, operands, results, op.attrs, op.regions, op.span)
        self.defs.update((value, made) for value in results)
        return results

    def emit(
        self, kind: str, operands: Sequence[Value], attrs: dict[str, object], op: Op
    ) -> Sequence[Value]:
        """A new operation that stands for `op`, with its result's type and name."""
        old = op.result
        made = self.rw.builder.emit(
            kind, operands, attrs, type=old.type, name=old.name, span=op.span
        )
        self.defs[made] = Op(kind, tuple(operands), (made,), MappingProxyType(attrs), (), op.span)
        return [made]

    def made_by(self, value: Value, kind: str) -> Op | None:
        op = self.defs.get(value)
        return op if op is not None and op.kind == kind else None

    def constant(self, value: Value) -> int | float | bool | None:
        """The number that a value is everywhere: a constant, perhaps repeated."""
        op = self.defs.get(value)
        while op is not None and op.kind in ("broadcast", "reshape"):
            op = self.defs.get(op.operands[0])
        if op is None or op.kind != "const":
            return None
        number: int | float | bool = op.attrs["value"]
        return number


def _shape(value: Value) -> tuple[object, ...]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _is_integer(value: Value) -> bool:
    type_ = value.type
    return (
        isinstance(type_, TensorType)
        and isinstance(type_.dtype, DType)
        and (type_.dtype.is_integer)
    )


def _cast(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    return operands if operands[0].type == op.result.type else None


def _tuple(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    """A tuple of all items of a tuple, in order, is that tuple."""
    gets = [s.made_by(value, "tuple_get") for value in operands]
    found = [get for get in gets if get is not None]
    if not found or len(found) != len(gets) or found[0].operands[0].type != op.result.type:
        return None
    whole = found[0].operands[0]
    in_order = all(g.operands[0] is whole and g.attrs["index"] == k for k, g in enumerate(found))
    return [whole] if in_order else None


def _tuple_get(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    made = s.made_by(operands[0], "tuple")
    return None if made is None else [made.operands[op.attrs["index"]]]


def _struct_get(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    made = s.made_by(operands[0], "struct")
    if made is None:
        return None
    names = [name for name, _ in made.result.type.fields]  # type: ignore[union-attr]
    return [made.operands[names.index(op.attrs["field"])]]


def _reshape(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    (source,) = operands
    if source.type == op.result.type:
        return operands
    inner = s.made_by(source, "reshape")
    if inner is None:
        return None
    if inner.operands[0].type == op.result.type:
        return inner.operands
    return s.emit("reshape", inner.operands, {}, op)


def _permute(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    order = tuple(op.attrs["order"])
    inner = s.made_by(operands[0], "permute")
    source = operands[0]
    if inner is not None:
        before = tuple(inner.attrs["order"])
        order, source = tuple(before[k] for k in order), inner.operands[0]
    if order == tuple(range(len(order))):
        return [source]
    return None if inner is None else s.emit("permute", [source], {"order": order}, op)


def _broadcast(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    (source,) = operands
    if source.type == op.result.type:
        return operands
    inner = s.made_by(source, "broadcast")
    if inner is None:
        return None
    outer = op.attrs["axes"]
    axes = tuple(outer[k] for k in inner.attrs["axes"])
    if inner.operands[0].type == op.result.type:
        return inner.operands
    return s.emit("broadcast", inner.operands, {"axes": axes}, op)


def _slice(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    (source,) = operands
    for bound, extent in zip(op.attrs["bounds"], _shape(source), strict=True):
        if bound is not None and bound != (Dim.of(0), extent, Dim.of(1)):
            return None
    return operands


def _concat(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    return operands if len(operands) == 1 else None


def _gather(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    """A gather without indices that names each result item once only reorders axes."""
    items = [number for how, number in op.attrs["source"] if how == "axis"]
    if len(operands) != 1 or sorted(items) != list(range(len(_shape(op.result)))):
        return None
    order = tuple(items.index(k) for k in range(len(items)))
    if order == tuple(range(len(order))):
        return operands
    return s.emit("permute", operands, {"order": order}, op)


def _reduce(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    return operands if not op.attrs["axes"] else None


def _select(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    condition = s.constant(operands[0])
    if operands[1] is operands[2]:
        return [operands[1]]
    return None if condition is None else [operands[1 if condition else 2]]


def _if(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    condition = s.constant(operands[0])
    if condition is None:
        return None
    return s.rw.inline(op.regions[0 if condition else 1], ())


def _match_optional(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    held = s.made_by(operands[0], "some")
    if held is not None:
        return s.rw.inline(op.regions[0], held.operands)
    if s.made_by(operands[0], "none") is not None:
        return s.rw.inline(op.regions[1], ())
    return None


def _match_enum(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    made = s.made_by(operands[0], "enum")
    if made is None:
        return None
    for cases, region in zip(op.attrs["cases"], op.regions, strict=True):
        if made.attrs["case"] in cases:
            return s.rw.inline(region, ())
    return None


def _static_for(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
    start, stop = op.attrs["start"].constant, op.attrs["stop"].constant
    empty = start is not None and stop is not None and start >= stop
    return operands if empty else None


def _neutral(right_only: bool, number: int) -> Callable[[_Simplifier, Op, Sequence[Value]], Found]:
    """Integers only: -0.0 + 0 is not -0.0."""

    def rule(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
        left, right = operands
        if not _is_integer(left):
            return None
        if s.constant(right) == number:
            return [left]
        return [right] if not right_only and s.constant(left) == number else None

    return rule


def _and_or(neutral: bool) -> Callable[[_Simplifier, Op, Sequence[Value]], Found]:
    def rule(s: _Simplifier, op: Op, operands: Sequence[Value]) -> Found:
        left, right = operands
        if left is right or s.constant(right) is neutral:
            return [left]
        return [right] if s.constant(left) is neutral else None

    return rule


_RULES: dict[str, Callable[[_Simplifier, Op, Sequence[Value]], Found]] = {
    "cast": _cast,
    "tuple": _tuple,
    "tuple_get": _tuple_get,
    "struct_get": _struct_get,
    "reshape": _reshape,
    "permute": _permute,
    "broadcast": _broadcast,
    "slice": _slice,
    "concat": _concat,
    "gather": _gather,
    "reduce": _reduce,
    "select": _select,
    "if": _if,
    "match_optional": _match_optional,
    "match_enum": _match_enum,
    "static_for": _static_for,
    "add": _neutral(False, 0),
    "sub": _neutral(True, 0),
    "mul": _neutral(False, 1),
    "div": _neutral(True, 1),
    "and": _and_or(True),
    "or": _and_or(False),
}
