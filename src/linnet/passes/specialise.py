"""specialise: generic functions become the functions of one bound model.

Needs a `Binding`, the entries asked for and which parameters are present. Guarantees: no packs,
dtype variables, block generics, `match_sub` or optional parameters of blocks are left; a
function's `generics` are the Dims that stay symbolic, in the order of the arguments that calls
give; loops over child blocks run over elements that are alike. A function is made once for each
distinct use: its concrete arguments, which symbolic ones are equal, which optional arguments are
known to be there, and what its block lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal

from linnet.diagnostics import InternalError
from linnet.dims import Dim, Relation, Symbol, fresh_symbol
from linnet.ir import (
    Function,
    Generic,
    Grad,
    Op,
    Param,
    Program,
    Ref,
    Region,
    SubVar,
    Value,
)
from linnet.ir.rewrite import Rewriter
from linnet.passes.arguments import check_names, entry_arguments
from linnet.passes.bound import Binding
from linnet.passes.fold import size_constant
from linnet.passes.generics import BindError
from linnet.passes.memo import Memo
from linnet.passes.module import Module
from linnet.passes.presence import Absent, Node, root_node
from linnet.types import DType, GenericArg, OptionalType, Subst, TensorType

Known = Literal["held", "absent", "unknown"]
Key = tuple[str, tuple[object, ...], tuple[Known, ...], Absent]


def specialise(
    binding: Binding,
    entries: Sequence[str],
    present: frozenset[str] | None = None,
    sizes: Mapping[str, Any] | None = None,
    *,
    gradients: bool = False,
) -> Module:
    """The functions that `entries` need; `sizes` binds generics of the entries themselves.

    Without `gradients` the ops' `grad` clauses are left out. Raises `BindError` for entries that
    there are not and for `sizes` that do not fit them.
    """
    available = binding.program.entries(binding.block)
    made = _Specialiser(binding.program, gradients)
    node = root_node(binding, present)
    for entry in entries:
        if entry not in available:
            known = ", ".join(sorted(available)) or "none"
            raise BindError(f"there is no entry `{entry}`; the entries: {known}")
    given = {} if sizes is None else sizes
    check_names([available[e] for e in entries], () if node is None else node.instance.args, given)
    names = {entry: made.entry(available[entry], node, given) for entry in entries}
    return Module(made.functions, names, made.origins, bases=made.bases, arguments=made.arguments)


@dataclass(slots=True)
class _Specialiser:
    """The functions made so far. Recursion cannot occur: checked programs have none."""

    program: Program
    gradients: bool
    functions: dict[str, Function] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Mapping[str, Dim]] = field(default_factory=dict)
    names: dict[Key, str] = field(default_factory=dict)

    def entry(self, function: Function, node: Node | None, sizes: Mapping[str, Any]) -> str:
        args = entry_arguments(function, node.instance.args if node is not None else (), sizes)
        knowns = _unknown(len(function.params))
        name, _ = self.use(function.name, args, knowns, node)
        return name

    def use(
        self,
        callee: str,
        args: tuple[GenericArg, ...],
        knowns: tuple[Known, ...],
        node: Node | None,
    ) -> tuple[str, tuple[Dim, ...]]:
        """The specialised function's name, and the sizes a call passes to it."""
        pattern, symbolic = canonical(args)
        absent: Absent = node.absent if node is not None else frozenset()
        key = (callee, pattern, knowns, absent)
        if key not in self.names:
            function = self.program.functions[callee]
            base = function.short_name.replace(".", "_")
            name = self.names[key] = f"{base}~{len(self.names)}"
            self.origins[name], self.bases[name] = callee, base
            generics, subst = _bind_generics(function, args, symbolic)
            self.arguments[name] = {
                g.name: subst.dim(Dim.of(g.var))
                for g in function.generics
                if isinstance(g.var, Symbol)
            }
            work = _FunctionWork(self, function, subst, knowns, node)
            self.functions[name] = work.make(name, generics)
        return self.names[key], symbolic


def canonical(args: tuple[GenericArg, ...]) -> tuple[tuple[object, ...], tuple[Dim, ...]]:
    """Arguments with each distinct symbolic dimension numbered, and those dimensions."""
    symbolic: dict[Dim, int] = {}

    def mark(arg: object) -> object:
        if isinstance(arg, Dim):
            number = arg.constant
            return number if number is not None else (symbolic.setdefault(arg, len(symbolic)),)
        if isinstance(arg, DType):
            return arg
        if isinstance(arg, tuple):
            return ("pack", *map(mark, arg))
        raise InternalError("passes.specialise", f"`{arg}` is still generic in a call")

    return tuple(map(mark, args)), tuple(symbolic)


def _bind_generics(
    function: Function, args: tuple[GenericArg, ...], symbolic: tuple[Dim, ...]
) -> tuple[tuple[Generic, ...], Subst]:
    """The generics that stay, one for each symbolic dimension, and what the others become."""
    stay: dict[Dim, Generic] = {}
    for generic, arg in zip(function.generics, args, strict=True):
        if isinstance(arg, Dim) and arg in symbolic and arg not in stay:
            stay[arg] = Generic(generic.name, "Dim", generic.var)
    for generic, arg in zip(function.generics, args, strict=True):
        for number, item in enumerate(arg if isinstance(arg, tuple) else ()):
            if isinstance(item, Dim) and item in symbolic and item not in stay:
                name = f"{generic.name}{number}"
                stay[item] = Generic(name, "Dim", fresh_symbol(name))

    def local(arg: GenericArg) -> GenericArg:
        if isinstance(arg, tuple):
            return tuple(_local_dim(item, stay) for item in arg if isinstance(item, Dim))
        return _local_dim(arg, stay) if isinstance(arg, Dim) else arg

    pairs = {g.var: local(arg) for g, arg in zip(function.generics, args, strict=True)}
    return tuple(stay[dim] for dim in symbolic), Memo.of_subst(Subst.of(pairs))


def _local_dim(dim: Dim, stay: Mapping[Dim, Generic]) -> Dim:
    generic = stay.get(dim)
    if generic is None:
        return dim
    if not isinstance(generic.var, Symbol):
        raise InternalError("passes.specialise", f"`{generic.name}` is no dimension")
    return Dim.of(generic.var)


class _FunctionWork:
    """Makes one specialised function."""

    def __init__(
        self,
        owner: _Specialiser,
        function: Function,
        subst: Subst,
        knowns: tuple[Known, ...],
        node: Node | None,
    ) -> None:
        self.owner = owner
        self.function = function
        self.knowns = knowns
        self.node = node
        self.vars: dict[SubVar, Node] = {}
        # Optional values of the original that are known: what they hold in the copy, or None.
        self.known: dict[Value, Value | None] = {}
        self.rw = Rewriter(self.transform, subst=subst)

    def make(self, name: str, generics: tuple[Generic, ...]) -> Function:
        source = self.function
        values = tuple(p.value for p in source.params)
        body, kept = self._body(values, self.knowns, source.body)
        params = tuple(
            Param(p.name, value, p.default)
            for p, value in zip(source.params, kept, strict=True)
            if value is not None
        )
        grad = source.grad if self.owner.gradients else None
        if grad is not None:
            knowns = self.knowns + _unknown(len(grad.params) - len(values))
            grad_body, grad_kept = self._body(grad.params, knowns, grad.body)
            grad = Grad(tuple(v for v in grad_kept if v is not None), grad_body)
        where = tuple(c for c in map(self._clause, source.where) if not _is_constant(c))
        return replace(
            source, name=name, generics=generics, params=params, where=where, body=body, grad=grad
        )

    def _clause(self, clause: Relation) -> Relation:
        subst = self.rw.subst
        return clause if subst is None else subst.relation(clause)

    def _body(
        self, params: tuple[Value, ...], knowns: tuple[Known, ...], region: Region
    ) -> tuple[Region, tuple[Value | None, ...]]:
        """A body's copy, and for each parameter the one that stays (None: dropped)."""
        rw = self.rw
        with rw.builder.region() as inner:
            kept = tuple(self._parameter(p, k) for p, k in zip(params, knowns, strict=True))
            for op in region.ops:
                rw.op(op)
            inner.give(*map(rw.value, region.results))
        staying = tuple(value for value in kept if value is not None)
        closed = inner.region
        return Region(staying if region.params else (), closed.ops, closed.results), kept

    def _parameter(self, param: Value, known: Known) -> Value | None:
        if known == "unknown":
            return self.rw.new_value(param)
        type_ = self.rw.type(param.type)
        if not isinstance(type_, OptionalType):
            raise InternalError("passes.specialise", f"{param!r} is known but not optional")
        if known == "absent":
            self.known[param] = None
            self.rw.values[param] = self.rw.builder.emit("none", type=type_, name=param.name)
            return None
        held = Value(type_.inner, param.name, param.span)
        self.known[param] = held
        self.rw.values[param] = self.rw.builder.emit("some", [held], type=type_, name=param.name)
        return held

    # --- operations ----------------------------------------------------------------------------

    def transform(self, rw: Rewriter, op: Op) -> Sequence[Value] | None:
        match op.kind:
            case "call":
                return self._call(op)
            case "param" if isinstance(op.result.type, OptionalType):
                return self._optional_param(op)
            case "some":
                self.known[op.result] = rw.value(op.operands[0])
            case "none":
                self.known[op.result] = None
            case "match_optional" if op.operands[0] in self.known:
                held = self.known[op.operands[0]]
                if held is None:
                    return self._take(op, op.regions[1], ())
                return self._take(op, op.regions[0], (held,))
            case "match_sub":
                ref: Ref = op.attrs["ref"]
                there = self._node(Ref(ref.root, ref.steps[:-1])).has(str(ref.steps[-1]))
                return self._take(op, op.regions[0 if there else 1], ())
            case "for_subs":
                return self._for_subs(op)
            case "dim":
                return self._dim(op)
            case _:
                pass
        return None

    def _node(self, ref: Ref) -> Node:
        root = self.node if ref.root is None else self.vars.get(ref.root)
        if root is None:
            raise InternalError("passes.specialise", f"`{ref}` starts at no known block")
        return root.walk(ref.steps)

    def _take(self, op: Op, region: Region, args: Sequence[Value]) -> Sequence[Value]:
        """The region's results in place of a match that is decided."""
        results = self.rw.inline(region, args)
        for outer, inner in zip(op.results, region.results, strict=True):
            if inner in self.known:
                self.known[outer] = self.known[inner]
        return results

    def _optional_param(self, op: Op) -> Sequence[Value]:
        ref: Ref = op.attrs["ref"]
        type_ = self.rw.type(op.result.type)
        if not isinstance(type_, OptionalType):
            raise InternalError("passes.specialise", f"`{ref}` is not optional", op.span)
        builder, name = self.rw.builder, op.result.name
        if not self._node(Ref(ref.root, ref.steps[:-1])).has(str(ref.steps[-1])):
            self.known[op.result] = None
            return [builder.emit("none", type=type_, name=name, span=op.span)]
        held = builder.emit(
            "param", (), self.rw.attrs(op), type=type_.inner, name=name, span=op.span
        )
        self.known[op.result] = held
        return [builder.emit("some", [held], type=type_, name=name, span=op.span)]

    def _dim(self, op: Op) -> Sequence[Value] | None:
        attrs = self.rw.attrs(op)
        number = attrs["dim"].constant
        type_ = self.rw.type(op.result.type)
        if number is None or not isinstance(type_, TensorType):
            return None
        value = size_constant(number, type_.dtype) if isinstance(type_.dtype, DType) else None
        if value is None:
            return None
        const = self.rw.builder.emit(
            "const", (), {"value": value}, type=type_, name=op.result.name, span=op.span
        )
        return [const]

    def _call(self, op: Op) -> Sequence[Value]:
        attrs = self.rw.attrs(op)
        receiver: Ref | None = op.attrs.get("receiver")
        node = None if receiver is None else self._node(receiver)
        knowns = tuple(map(self._knowledge, op.operands))
        name, dims = self.owner.use(attrs["callee"], tuple(attrs["generics"]), knowns, node)
        operands: list[Value] = []
        for value, known in zip(op.operands, knowns, strict=True):
            held = self.known.get(value)
            if known == "unknown":
                operands.append(self.rw.value(value))
            elif held is not None:
                operands.append(held)
        new = MappingProxyType({**attrs, "callee": name, "generics": dims})
        return self.rw.copy(op, operands=operands, attrs=new)

    def _knowledge(self, value: Value) -> Known:
        if value not in self.known:
            return "unknown"
        return "absent" if self.known[value] is None else "held"

    def _for_subs(self, op: Op) -> Sequence[Value]:
        array: Ref = op.attrs["array"]
        owner = self._node(Ref(array.root, array.steps[:-1]))
        elements = owner.elements(str(array.steps[-1]))
        carried: tuple[Value, ...] = self.rw.operands(op)
        start = 0
        for node, group in groupby(elements):
            stop = start + sum(1 for _ in group)
            whole = start == 0 and stop == len(elements)
            carried = self._run(op, node, carried, None if whole else (start, stop))
            start = stop
        return carried

    def _run(
        self, op: Op, node: Node, carried: tuple[Value, ...], part: tuple[int, int] | None
    ) -> tuple[Value, ...]:
        """The loop over one run of elements that are alike."""
        old: SubVar = op.attrs["var"]
        var = SubVar(old.name)
        self.vars[old] = node
        self.rw.sub_vars[old] = Ref(var, ())
        attrs = {**self.rw.attrs(op), "var": var}
        if part is not None:
            attrs["start"], attrs["stop"] = part
        return self.rw.copy(op, operands=carried, attrs=MappingProxyType(attrs))


def _unknown(count: int) -> tuple[Known, ...]:
    return tuple("unknown" for _ in range(count))


def _is_constant(clause: Relation) -> bool:
    return clause.left.constant is not None and clause.right.constant is not None
