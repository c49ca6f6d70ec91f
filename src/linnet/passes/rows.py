"""rows: only the rows that are asked for go through what treats each row by itself.

    head(norm(x))[:, last]   ==   head(norm(x[:, last]))

Needs specialised functions. A slice, or an index that takes one row of each run of rows, moves
before calls of functions that cannot tell how many rows there are (`rowwise`), and before
elementwise work, as long as nothing else reads the rows that are left out. Where the rows are made
in another function, that one gets a version that gives the chosen rows alone.
Guarantees the same values, and the same failures: an index lies in the same axis before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from linnet.dims import Dim, Symbol
from linnet.ir import OPS, Function, Op, Param, Value
from linnet.ir.build import Builder, tensor_type
from linnet.ir.rewrite import Rewriter, drop_dead
from linnet.ir.walk import definitions, use_counts, walk_regions
from linnet.passes.effects import Effects, call_writes, summaries, summary
from linnet.passes.module import Module, Note
from linnet.passes.picks import Pick, read_pick
from linnet.passes.rowwise import Rowwise
from linnet.passes.simplify import simplify_function
from linnet.types import Subst, TensorType

_POINTWISE = frozenset({"unary", "binary", "compare", "select"})
_MOST = 64  # moves in one function


def rows(module: Module) -> Module:
    """The module with choices of rows before work on rows."""
    work = _Rows(module)
    for name, function in module.functions.items():
        work.done[name] = work.run(function)[0]
    origins, bases = dict(module.origins), dict(module.bases)
    arguments = dict(module.arguments)
    for name, source in work.sources.items():
        origins[name] = origins.get(source, source)
        bases[name] = bases.get(source, source)
        arguments[name] = arguments.get(source, {})
    made = replace(module, functions=work.done, origins=origins, bases=bases, arguments=arguments)
    return made.noting(work.notes)


@dataclass(slots=True)
class _Rows:
    module: Module
    done: dict[str, Function] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # a version made here -> the function
    rowwise: Rowwise = field(init=False)
    effects: dict[str, Effects] = field(init=False)
    notes: list[Note] = field(default_factory=list)
    where: str = ""  # the source function that is looked at

    def __post_init__(self) -> None:
        self.rowwise = Rowwise(self.module.functions)
        self.effects = summaries(self.module.functions)

    def run(self, function: Function) -> tuple[Function, bool]:
        """The function with its picks moved, and whether some call has fewer rows for it."""
        narrowed = moved = False
        self.where = self.module.origin(self.sources.get(function.name, function.name))
        for _ in range(_MOST):
            found = self.move(function)
            if found is None:
                break
            moved = True
            function, call = found
            narrowed |= call
        return simplify_function(function) if moved else function, narrowed

    def move(self, function: Function) -> tuple[Function, bool] | None:
        makers, uses = definitions(function.body), use_counts(function)
        for region in walk_regions(function.body):
            here = set(region.ops)
            for op in region.ops:
                pick = read_pick(op)
                maker = None if pick is None else makers.get(pick.of)
                if pick is None or maker is None or maker not in here or uses[pick.of] != 1:
                    continue
                for step in (self.before_call, self.before_elementwise, self.into_callee):
                    builder = Builder(span=op.span)
                    made = step(builder, pick, maker, makers, uses)
                    if made is not None:
                        moved = _replaced(function, op, builder, made)
                        moved = drop_dead(moved, call_writes(self.effects))
                        return moved, step != self.before_elementwise
        return None

    def before_elementwise(
        self, builder: Builder, pick: Pick, maker: Op, makers: Mapping[Value, Op],
        uses: Mapping[Value, int],
    ) -> Value | None:  # fmt: skip
        """pick(f(a, b)) == f(pick(a), pick(b)), and of a repeated value without the repeating."""
        shape = pick.op.result.type
        assert isinstance(shape, TensorType)
        if maker.kind == "broadcast":
            return pick.of_broadcast(builder, maker)
        if OPS[maker.kind].group not in _POINTWISE:
            return None
        same = {axis: axis for axis in range(len(tensor_type(maker.result).shape))}
        operands = [pick.apply(builder, v, same) for v in maker.operands]
        type_ = tensor_type(maker.result).with_shape(shape.shape)
        return builder.emit(maker.kind, operands, maker.attrs, type=type_, name=maker.result.name)

    def before_call(
        self, builder: Builder, pick: Pick, maker: Op, makers: Mapping[Value, Op],
        uses: Mapping[Value, int],
    ) -> Value | None:  # fmt: skip
        """pick(f(x)) == f(pick(x)) of a function that treats each row by itself; its rows may be
        split over several axes after it."""
        call: Op | None = maker
        if maker.kind == "reshape":
            call = makers.get(maker.operands[0])
            if uses[maker.operands[0]] != 1:
                return None
        if call is None or call.kind != "call" or len(call.results) != 1:
            return None
        callee = self.module.functions.get(call.attrs["callee"])
        if callee is None or not isinstance(call.result.type, TensorType):
            return None
        for number, generic in enumerate(callee.generics):
            if not isinstance(generic.var, Symbol):
                continue
            axes = self.rowwise.of(callee.name, generic.var)
            if axes is None or call.attrs["generics"][number].constant is not None:
                continue
            block = pick.block(tensor_type(call.result), axes.result)
            if block is not None:
                sources = [_before_reshapes(v, makers) for v in call.operands]
                self.note(callee.name, call.attrs["generics"][number], pick, axes.result, block)
                return _fewer(builder, pick, call, sources, axes.params, axes.result, block, number)
        return None

    def note(self, callee: str, rows: Dim, pick: Pick, first: int, block: int) -> None:
        left = _product(pick.extents(range(first, first + block)))
        where, called = self.where, self.module.origin(callee).rpartition("::")[2]
        self.notes.append(Note("rows", where, f"`{called}` gets {left} of {rows} rows"))

    def into_callee(
        self, builder: Builder, pick: Pick, maker: Op, makers: Mapping[Value, Op],
        uses: Mapping[Value, int],
    ) -> Value | None:  # fmt: skip
        """A version of the callee that gives the picked rows, where that saves work in it."""
        if maker.kind != "call" or len(maker.results) != 1 or maker.attrs.get("prepared"):
            return None
        callee = self.done.get(maker.attrs["callee"])
        if callee is None or callee.kind != "fn" or callee.grad is not None:
            return None
        made = _with_pick(callee, pick, maker, f"{callee.name}~rows{len(self.sources)}")
        if made is None:
            return None
        before = len(self.notes)
        version, narrowed = self.run(made)
        if not narrowed:
            del self.notes[before:]
            return None
        self.done[version.name] = version
        self.sources[version.name] = callee.name
        self.effects[version.name] = summary(version, self.effects)
        self.rowwise.functions = {**self.rowwise.functions, version.name: version}
        attrs = {**maker.attrs, "callee": version.name}
        operands = (*maker.operands, *pick.indices)
        return builder.emit("call", operands, attrs, type=pick.op.result.type, span=maker.span)


def _replaced(function: Function, op: Op, made: Builder, value: Value) -> Function:
    """The function with what `made` holds in place of an operation."""
    ops = made.finish().ops

    def transform(rw: Rewriter, at: Op) -> Sequence[Value] | None:
        if at is not op:
            return None
        for new in ops:
            rw.op(new)
        return [rw.value(value)]

    return Rewriter(transform, fresh=False).function(function)


def _fewer(
    builder: Builder, pick: Pick, call: Op, sources: Sequence[Value], params: Sequence[int | None],
    result: int, block: int, number: int,
) -> Value:  # fmt: skip
    """The call on the picked rows, which are `block` axes of the picked value. `sources` hold the
    operands' elements, perhaps in other shapes."""
    whole = tensor_type(pick.of)
    split = whole.dims[result : result + block]
    kept = pick.extents(range(result, result + block))
    count = _product(kept)
    operands: list[Value] = []
    for value, source, axis in zip(call.operands, sources, params, strict=True):
        if axis is None:
            operands.append(value)
            continue
        dims = tensor_type(value).dims
        before, after = dims[:axis], dims[axis + 1 :]
        apart = _reshaped(builder, source, (*before, *split, *after))
        places = {result + k: axis + k for k in range(block)}
        operands.append(
            _reshaped(builder, pick.apply(builder, apart, places), (*before, count, *after))
        )
    generics = list(call.attrs["generics"])
    generics[number] = count
    type_ = tensor_type(call.result)
    shape = (*type_.shape[:result], count, *type_.shape[result + 1 :])
    attrs = MappingProxyType({**call.attrs, "generics": tuple(generics)})
    made = builder.emit("call", operands, attrs, type=type_.with_shape(shape), span=call.span,
                        name=call.result.name)  # fmt: skip
    return _reshaped(builder, made, tensor_type(pick.op.result).dims)


def _before_reshapes(value: Value, makers: Mapping[Value, Op]) -> Value:
    maker = makers.get(value)
    while maker is not None and maker.kind == "reshape":
        value = maker.operands[0]
        maker = makers.get(value)
    return value


def _reshaped(builder: Builder, value: Value, dims: tuple[Dim, ...]) -> Value:
    type_ = tensor_type(value)
    if type_.dims == dims:
        return value
    return builder.emit("reshape", [value], type=type_.with_shape(dims))


def _with_pick(callee: Function, pick: Pick, call: Op, name: str) -> Function | None:
    """The callee with a pick of its result at its end, whose indices are further parameters."""
    names: dict[Symbol, Dim] = {}
    for generic, dim in zip(callee.generics, call.attrs["generics"], strict=True):
        (symbol, *others) = dim.symbols or (None,)
        if symbol is not None and not others and dim == Dim.of(symbol) and symbol not in names:
            assert isinstance(generic.var, Symbol)
            names[symbol] = Dim.of(generic.var)
    if not pick.symbols <= names.keys():
        return None
    subst = Subst(dims=names)
    indices = [Value(subst.type(v.type), _name(v), v.span) for v in pick.indices]
    rw = Rewriter(fresh=False)
    builder = rw.builder
    with builder.region() as inner:
        for op in callee.body.ops:
            rw.op(op)
        made = pick.again(builder, rw.value(callee.body.results[0]), indices, subst)
        inner.give(made)
    taken = {p.name for p in callee.params}
    extra: list[Param] = []
    for value in indices:
        base = fresh = value.name
        while fresh in taken:
            fresh = base + "_"
            base = fresh
        taken.add(fresh)
        extra.append(Param(fresh, value))
    params = (*callee.params, *extra)
    values = tuple(p.value for p in params) if callee.body.params else ()
    body = replace(inner.region, params=values)
    return replace(callee, name=name, params=params, body=body)


def _name(value: Value) -> str:
    return value.name if value.name.isidentifier() else "at"


def _product(dims: Sequence[Dim]) -> Dim:
    made = Dim.of(1)
    for dim in dims:
        made = made * dim
    return made
