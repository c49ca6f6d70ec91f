"""prepare: what depends on no input is computed once for a model, not once a call.

Needs specialised functions. Tables made of constants and sizes, and small results of parameters
alone, move to functions without parameters; they are called with `attrs["prepared"]`, and a runtime
keeps what they give (that of parameters until those change). Guarantees the same values. Not
prepared: what is cheap to make again, scalars, tables past `MAX_TABLE` bytes, results of parameters
past `MAX_DERIVED` (a second copy of weights is worse than the work), with `trainable` anything that
depends on parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from linnet.ir import Function, Op, Ref, Region, Value
from linnet.ir.rewrite import Rewriter
from linnet.ir.walk import free_of_op
from linnet.passes.module import Module, Note
from linnet.passes.placing import Traits, is_trivial
from linnet.passes.simplify import simplify_function
from linnet.types import DType, TensorType, TupleType

MAX_TABLE = 256 << 20
MAX_DERIVED = 1 << 20


def prepare(module: Module, *, trainable: bool = False) -> Module:
    """The module with input-independent work in prepared functions."""
    traits = Traits(module.functions)
    functions: dict[str, Function] = {}
    origins, bases = dict(module.origins), dict(module.bases)
    prepared: list[str] = []
    notes: list[Note] = []
    for name, function in module.functions.items():
        groups = _grouped(_Finder(traits, trainable).run(function))
        if not groups:
            functions[name] = function
            continue
        for group in groups:
            made = _prepared_function(function, group, f"{name}~{len(prepared)}")
            functions[made.name] = made
            origins[made.name] = origins.get(name, name)
            bases[made.name] = _base_name(bases, function, group)
            prepared.append(made.name)
            what = ", ".join(f"{v.name or 'a table'} {v.type}" for v in group.values)
            said = f"made once for a model: {what}"
            notes.append(Note("prepare", module.origin(name), said, len(group.values)))
            group.name = made.name
        functions[name] = _calling(function, groups)
    return replace(
        module, functions=functions, origins=origins, bases=bases,
        prepared=(*module.prepared, *prepared),
    ).noting(notes)  # fmt: skip


@dataclass(eq=False, slots=True)
class _Group:
    """Values prepared together because they share work; `ops` in program order. Where one may fail,
    `asked` holds the outermost regions that ask for it."""

    values: list[Value]
    ops: list[Op]
    weights: bool
    asked: frozenset[Region]
    work: set[Op] = field(default_factory=set)
    name: str = ""

    def take(self, other: _Group) -> None:
        own = set(self.ops)
        self.values += other.values
        self.ops += [op for op in other.ops if op not in own]
        self.work |= other.work
        self.weights |= other.weights


@dataclass(slots=True)
class _Finder:
    """Finds the values of one function that are worth preparing, with what they are made from."""

    traits: Traits
    trainable: bool
    weights: dict[Value, bool] = field(default_factory=dict)  # fixed values: made from weights?
    makers: dict[Value, Op] = field(default_factory=dict)
    order: dict[Op, int] = field(default_factory=dict)
    chosen: dict[Value, set[Region]] = field(default_factory=dict)  # with who asks for them
    seen: set[tuple[Value, Region]] = field(default_factory=set)
    outer: dict[Region, Region] = field(default_factory=dict)

    def run(self, function: Function) -> list[_Group]:
        for value, region in list(self.region(function.body)):
            self.demand(value, region)
        return [self.group(value, asked) for value, asked in self.chosen.items()]

    def group(self, value: Value, asked: set[Region]) -> _Group:
        cone = sorted(self.cone(value), key=self.order.__getitem__)
        total = all(map(self.traits.total, cone))
        work = {op for op in cone if not is_trivial(op) and op.kind != "param"}
        where = () if total else (r for r in asked if not any(o in asked for o in self.around(r)))
        return _Group([value], cone, self.weights[value], frozenset(where), work)

    def around(self, region: Region) -> Iterator[Region]:
        """The regions that run wherever it does."""
        while (outer := self.outer.get(region)) is not None:
            yield outer
            region = outer

    def region(self, region: Region) -> Iterator[tuple[Value, Region]]:
        """Marks what is fixed; gives what the operations that are not fixed take, and where."""
        needed: list[tuple[Value, Region]] = []
        for op in region.ops:
            self.order[op] = len(self.order)
            inputs = free_of_op(op)
            if self.is_fixed(op, inputs):
                weights = op.kind == "param" or any(self.weights[v] for v in inputs)
                weights = weights or op.attrs.get("receiver") is not None
                for value in op.results:
                    self.weights[value], self.makers[value] = weights, op
                continue
            needed.extend((value, region) for value in op.operands)
            for inner in op.regions:
                self.outer[inner] = region
                needed.extend(self.region(inner))
        needed.extend((value, region) for value in region.results)
        return iter(needed)

    def is_fixed(self, op: Op, inputs: Sequence[Value]) -> bool:
        if not all(value in self.weights for value in inputs) or not self.traits.pure(op):
            return False
        if not all(map(_is_concrete, (v.type for v in op.results))):
            return False
        match op.kind:
            case "dim":
                return op.attrs["dim"].constant is not None
            case "param":
                ref: Ref = op.attrs["ref"]
                return not self.trainable and ref.root is None
            case "call":
                return op.attrs.get("receiver") is None and all(
                    dim.constant is not None for dim in op.attrs["generics"]
                )
            case "native":
                return False
            case _:
                return not op.regions

    def demand(self, value: Value, region: Region) -> None:
        """Chooses `value` when it is fixed and worth it, else looks at what it is made from."""
        stack = [value]
        while stack:
            value = stack.pop()
            if (value, region) in self.seen or value not in self.makers:
                continue
            self.seen.add((value, region))
            if value in self.chosen or self.is_worth(value):
                self.chosen.setdefault(value, set()).add(region)
            else:
                stack.extend(self.makers[value].operands)

    def is_worth(self, value: Value) -> bool:
        type_, maker = value.type, self.makers[value]
        if not isinstance(type_, TensorType) or type_.is_scalar or is_trivial(maker):
            return False
        limit = MAX_DERIVED if self.weights[value] else MAX_TABLE
        return _bytes(type_) <= limit and any(map(self.is_work, self.cone(value)))

    def is_work(self, op: Op) -> bool:
        type_ = op.result.type
        scalar = isinstance(type_, TensorType) and type_.is_scalar
        return not scalar and self.traits.work(op)

    def cone(self, value: Value) -> set[Op]:
        """Everything that `value` is made by."""
        found: set[Op] = set()
        stack = [self.makers[value]]
        while stack:
            op = stack.pop()
            if op not in found:
                found.add(op)
                stack.extend(self.makers[v] for v in op.operands)
        return found


def _is_concrete(type_: object) -> bool:
    if isinstance(type_, TensorType):
        return all(dim.constant is not None for dim in type_.dims)
    return isinstance(type_, TupleType) and all(map(_is_concrete, type_.items))


def _bytes(type_: TensorType) -> int:
    each = type_.dtype.bytes if isinstance(type_.dtype, DType) else 8
    return math.prod(dim.constant or 0 for dim in type_.dims) * each


def _grouped(found: list[_Group]) -> list[_Group]:
    """Values that share work that is not trivial in one group, in order. Values that may fail are
    together only where the same regions ask for them: another may never run."""
    groups: list[_Group] = []
    for one in found:
        for group in groups:
            if group.asked == one.asked and not group.work.isdisjoint(one.work):
                group.take(one)
                break
        else:
            groups.append(one)
    return groups


def _base_name(bases: Mapping[str, str], function: Function, group: _Group) -> str:
    calls = [op for op in group.ops if op.kind == "call"]
    source = calls[0].attrs["callee"] if len(calls) == 1 else function.name
    return f"{bases.get(source, source)}_prepared"


def _prepared_function(function: Function, group: _Group, name: str) -> Function:
    rw = Rewriter()
    with rw.builder.region() as inner:
        for op in group.ops:
            rw.op(op)
        values = [rw.value(v) for v in group.values]
        inner.give(values[0] if len(values) == 1 else rw.builder.emit("tuple", values))
    block = function.block if group.weights else None
    made = replace(
        function, name=name, kind="fn", block=block, generics=(), params=(), where=(),
        body=inner.region, grad=None,
    )  # fmt: skip
    return simplify_function(made)


def _calling(function: Function, groups: Sequence[_Group]) -> Function:
    """The function with calls of prepared functions where it made their values."""
    places = {value: (group, k) for group in groups for k, value in enumerate(group.values)}

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if len(op.results) != 1 or op.results[0] not in places:
            return None
        group, index = places[op.result]
        receiver = Ref(None, ()) if group.weights else None
        attrs = {"callee": group.name, "generics": (), "receiver": receiver, "prepared": True}
        types = tuple(value.type for value in group.values)
        type_ = types[0] if len(types) == 1 else TupleType(types)
        name = op.result.name
        whole = rw.builder.emit(
            "call", (), MappingProxyType(attrs), type=type_, span=op.span,
            name=name if len(types) == 1 else "",
        )  # fmt: skip
        if len(types) == 1:
            return [whole]
        return [rw.builder.emit("tuple_get", [whole], {"index": index}, name=name, span=op.span)]

    return Rewriter(transform, fresh=False).function(function)
