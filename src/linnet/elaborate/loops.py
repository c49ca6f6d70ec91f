"""Loops: which variables they carry, and their bodies as regions."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.diagnostics import Span
from linnet.dims import Dim, Relation
from linnet.elaborate.context import BROKEN, Context, OpenRegion
from linnet.elaborate.control import scalar_bool
from linnet.elaborate.elementwise import common_dtype
from linnet.elaborate.entities import LocalEntity, VarEntity
from linnet.elaborate.naming import check_not_prelude
from linnet.elaborate.operands import (
    ErrorOperand,
    IntOperand,
    Operand,
    SubOperand,
    ValueOperand,
)
from linnet.elaborate.patterns import bind_pattern
from linnet.ir import Ref, Region, SubVar, Value
from linnet.syntax import tree
from linnet.types import BOOL, I64, TensorType, TupleType, Type


def _carried(ctx: Context, body: tree.Body) -> list[VarEntity]:
    """The variables from outside that a loop body assigns, in order."""
    found: dict[int, VarEntity] = {}

    def walk(nodes: Sequence[tree.Statement], hidden: set[str]) -> None:
        for node in nodes:
            match node:
                case tree.Assign(name):
                    entity = ctx.scope.lookup(name.text) if name.text not in hidden else None
                    if isinstance(entity, VarEntity):
                        found[id(entity)] = entity
                case tree.Let(pattern, _, value):
                    if isinstance(value, tree.For):
                        walk(value.body.statements, hidden | {value.name.text})
                    hidden = hidden | _names(pattern)
                case tree.LetIndexed(name) | tree.Var(name):
                    hidden = hidden | {name.text}
                case tree.StaticFor(pattern, body=inner):
                    walk(inner.statements, hidden | _names(pattern))
                case tree.For(name, body=inner):
                    walk(inner.statements, hidden | {name.text})
                case tree.While(body=inner):
                    walk(inner.statements, hidden)
                case _:
                    pass

    walk(body.statements, set())
    return list(found.values())


def _names(pattern: tree.Pattern) -> set[str]:
    if isinstance(pattern, tree.NamePattern):
        return {pattern.name.text}
    return {name for item in pattern.items for name in _names(item)}


class _Loop:
    """A loop being checked: the variables it carries and their values at its ends."""

    def __init__(self, ctx: Context, body: tree.Body) -> None:
        self.ctx = ctx
        self.variables = _carried(ctx, body)
        self.inits = [variable.current for variable in self.variables]
        self.broken = any(isinstance(init, ErrorOperand) for init in self.inits)

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(init.value for init in self.inits if isinstance(init, ValueOperand))

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(variable.type for variable in self.variables)

    def enter(self) -> tuple[Value, ...]:
        """Region parameters that the variables stand for inside."""
        params = tuple(Value(v.type, v.name.text, v.name.span) for v in self.variables)
        for variable, param in zip(self.variables, params, strict=True):
            variable.current = ValueOperand(param)
        return params

    def currents(self) -> tuple[Value, ...]:
        found = [v.current.value for v in self.variables if isinstance(v.current, ValueOperand)]
        if len(found) != len(self.variables):
            self.broken = True
        return tuple(found)

    def leave(self, results: Sequence[Value]) -> None:
        for variable, result in zip(self.variables, results, strict=True):
            result.give_name(variable.name.text)
            variable.current = BROKEN if self.broken else ValueOperand(result)

    def abandon(self) -> None:
        for variable in self.variables:
            variable.current = BROKEN


def static_for(ctx: Context, node: tree.StaticFor) -> None:
    if node.stop is None:
        _for_subs(ctx, node)
        return
    start, stop = _static_bound(ctx, node.start), _static_bound(ctx, node.stop)
    loop = _Loop(ctx, node.body)
    index = Value(I64, _pattern_name(ctx, node.pattern), node.pattern.span)
    params = loop.enter()
    region = _body(ctx, node.pattern, ValueOperand(index), node.body)
    ends = loop.currents()
    if start is None or stop is None or loop.broken:
        loop.abandon()
        return
    attrs = {"start": start, "stop": stop}
    regions = (Region((index, *params), tuple(region.ops), ends),)
    loop.leave(ctx.emit_many("static_for", loop.values, loop.types, node.span, attrs, regions))


def _static_bound(ctx: Context, node: tree.Expr) -> Dim | None:
    operand = ctx.expr(node)
    if isinstance(operand, IntOperand):
        return operand.dim
    if not isinstance(operand, ErrorOperand):
        ctx.report(
            "E2121",
            "a `static for` needs compile-time bounds or an array of child blocks",
            node.span,
            help="use a runtime `for i in a..b`",
        )
    return None


def _pattern_name(ctx: Context, pattern: tree.Pattern) -> str:
    if isinstance(pattern, tree.NamePattern):
        return "" if pattern.name.text == "_" else pattern.name.text
    ctx.report("E2117", "a loop's index is one name", pattern.span)
    return ""


def _body(ctx: Context, pattern: tree.Pattern, operand: Operand, body: tree.Body) -> OpenRegion:
    with ctx.open_region() as region, ctx.inner_scope():
        bind_pattern(ctx, pattern, operand)
        if isinstance(pattern, tree.NamePattern):
            ctx.scope.used.add(pattern.name.text)
        ctx.run(body.statements)
    return region


def _for_subs(ctx: Context, node: tree.StaticFor) -> None:
    operand = ctx.expr(node.start)
    loop = _Loop(ctx, node.body)
    params = loop.enter()
    if not isinstance(operand, SubOperand) or operand.count is None:
        if not isinstance(operand, ErrorOperand):
            ctx.report(
                "E2121",
                "a `static for` needs an array of child blocks or bounds `a..b`",
                node.start.span,
            )
        _body(ctx, node.pattern, BROKEN, node.body)
        loop.abandon()
        return
    name = _pattern_name(ctx, node.pattern)
    var = SubVar(name)
    element = SubOperand(Ref(var, ()), operand.block, operand.args)
    with ctx.open_region() as region, ctx.inner_scope() as scope:
        if isinstance(node.pattern, tree.NamePattern) and name:
            check_not_prelude(ctx.world.reporter, node.pattern.name)
            scope.names[name] = LocalEntity(node.pattern.name, element)
            scope.used.add(name)
        ctx.run(node.body.statements)
    ends = loop.currents()
    if loop.broken:
        loop.abandon()
        return
    attrs = {"array": operand.ref, "var": var}
    regions = (Region(params, tuple(region.ops), ends),)
    loop.leave(ctx.emit_many("for_subs", loop.values, loop.types, node.span, attrs, regions))


def while_loop(ctx: Context, node: tree.While) -> None:
    loop = _Loop(ctx, node.body)
    cond_params = loop.enter()
    with ctx.open_region() as test, ctx.inner_scope():
        condition = ctx.expr(node.condition, BOOL)
        truth = None if isinstance(condition, ErrorOperand) else scalar_bool(ctx, condition, node)
    params = loop.enter()
    with ctx.open_region() as region, ctx.inner_scope():
        ctx.run(node.body.statements)
    ends = loop.currents()
    if truth is None or loop.broken:
        loop.abandon()
        return
    regions = (
        Region(cond_params, tuple(test.ops), (truth,)),
        Region(params, tuple(region.ops), ends),
    )
    loop.leave(ctx.emit_many("while", loop.values, loop.types, node.span, regions=regions))


def runtime_for(ctx: Context, node: tree.For, yields: bool = False) -> Operand:
    """A runtime `for`; with `yields` gives the stacked values."""
    operands = [ctx.expr(node.start), ctx.expr(node.stop)]
    length = _stack_length(ctx, node, operands) if yields else None
    bounds = _runtime_bounds(ctx, node, operands)
    loop = _Loop(ctx, node.body)
    index = Value(bounds[0].type if bounds else I64, node.name.text, node.name.span)
    params = loop.enter()
    body, last = _split_yield(ctx, node, yields)
    with ctx.open_region() as region, ctx.inner_scope() as scope:
        check_not_prelude(ctx.world.reporter, node.name)
        counter = ValueOperand(index) if bounds is not None else BROKEN
        scope.names[node.name.text] = LocalEntity(node.name, counter)
        scope.used.add(node.name.text)
        ctx.run(body)
        yielded = ctx.value(last.value) if last is not None else None
        leaves = _leaves(ctx, yielded, last.span) if last is not None and yielded else ()
    ends = loop.currents()
    if bounds is None or loop.broken or (yields and (length is None or not leaves)):
        loop.abandon()
        return BROKEN
    stacked = tuple(
        leaf.type.with_shape((length, *leaf.type.shape))
        for leaf in leaves
        if isinstance(leaf.type, TensorType) and length is not None
    )
    regions = (Region((index, *params), tuple(region.ops), (*ends, *leaves)),)
    results = ctx.emit_many(
        "for",
        (*bounds, *loop.values),
        (*loop.types, *stacked),
        node.span,
        {"yields": len(leaves)},
        regions,
    )
    count = len(loop.variables)
    loop.leave(results[:count])
    if not yields or yielded is None:
        return BROKEN
    return _gathered(ctx, yielded.type, list(results[count:]), node.span)


def _stack_length(ctx: Context, node: tree.For, operands: Sequence[Operand]) -> Dim | None:
    start, stop = operands
    if not (isinstance(start, IntOperand) and isinstance(stop, IntOperand)):
        if not any(isinstance(operand, ErrorOperand) for operand in operands):
            ctx.report(
                "E2123",
                "a loop that yields needs compile-time bounds, since they give the new axis",
                node.start.span.to(node.stop.span),
            )
        return None
    relation = Relation(start.dim, "<=", stop.dim)
    message = f"`{start.dim}..{stop.dim}` is not known to start before its end"
    if not ctx.prove(relation, "E2208", message, node.start.span.to(node.stop.span)):
        return None
    return stop.dim - start.dim


def _runtime_bounds(
    ctx: Context, node: tree.For, operands: Sequence[Operand]
) -> tuple[Value, Value] | None:
    spans = (node.start.span, node.stop.span)
    if any(isinstance(operand, ErrorOperand) for operand in operands):
        return None
    typed = common_dtype(ctx, operands, spans)
    if typed is None:
        return None
    dtype, both = typed
    values = [operand.value for operand in both if isinstance(operand, ValueOperand)]
    scalar = all(isinstance(v.type, TensorType) and v.type.is_scalar for v in values)
    if len(values) != 2 or not scalar or not dtype.is_integer:
        ctx.report("E2104", "loop bounds must be integer scalars", spans[0].to(spans[1]))
        return None
    return values[0], values[1]


def _split_yield(
    ctx: Context, node: tree.For, yields: bool
) -> tuple[Sequence[tree.Statement], tree.Yield | None]:
    body = node.body.statements
    if not yields:
        return body, None
    if body and isinstance(body[-1], tree.Yield):
        return body[:-1], body[-1]
    ctx.report("E2120", "the body of `let ... = for ...` must end in `yield`", node.span)
    return body, None


def _leaves(ctx: Context, value: Value, span: Span) -> tuple[Value, ...]:
    """The tensors in a yielded value; tuples are stacked part by part."""
    if isinstance(value.type, TensorType):
        return (value,)
    if isinstance(value.type, TupleType):
        parts: list[Value] = []
        for index, item in enumerate(value.type.items):
            part = ctx.emit("tuple_get", (value,), item, span, {"index": index})
            parts.extend(_leaves(ctx, part, span))
        return tuple(parts)
    ctx.report("E2101", f"`{value.type}` cannot be stacked", span)
    return ()


def _gathered(ctx: Context, type_: Type, stacked: list[Value], span: Span) -> Operand:
    """The yielded value's structure again, of stacked tensors (taken from the front)."""
    if isinstance(type_, TupleType):
        parts = [_gathered(ctx, item, stacked, span) for item in type_.items]
        values = tuple(part.value for part in parts if isinstance(part, ValueOperand))
        made = TupleType(tuple(value.type for value in values))
        return ValueOperand(ctx.emit("tuple", values, made, span))
    return ValueOperand(stacked.pop(0)) if stacked else BROKEN
