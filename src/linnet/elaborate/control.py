"""`if` and `match`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.diagnostics import Span
from linnet.elaborate.context import BROKEN, Context, OpenRegion, value_type
from linnet.elaborate.entities import EnumEntity, LocalEntity
from linnet.elaborate.operands import (
    ErrorOperand,
    NoneOperand,
    Operand,
    SomeOperand,
    SubOperand,
    ValueOperand,
)
from linnet.elaborate.patterns import bind_pattern
from linnet.elaborate.reporter import did_you_mean
from linnet.ir import Region, Value
from linnet.syntax import tree
from linnet.types import BOOL, EnumType, OptionalType, TensorType, Type


def if_expr(ctx: Context, node: tree.If, expected: Type | None) -> Operand:
    condition = ctx.expr(node.condition, BOOL)
    truth = None if isinstance(condition, ErrorOperand) else scalar_bool(ctx, condition, node)
    branches = [
        _branch(ctx, lambda: ctx.expr(node.then, expected)),
        _branch(ctx, lambda: ctx.expr(node.otherwise, expected)),
    ]
    spans = [node.then.span, node.otherwise.span]
    joined = _join(ctx, branches, spans, expected, node.span)
    if truth is None or joined is None:
        return BROKEN
    regions, type_ = joined
    return ValueOperand(ctx.emit("if", (truth,), type_, node.span, regions=regions))


def scalar_bool(ctx: Context, operand: Operand, node: tree.If | tree.While) -> Value | None:
    """A condition's value; reports E2114."""
    type_ = value_type(operand)
    if isinstance(operand, ValueOperand) and type_ == BOOL:
        return operand.value
    shown = type_ if type_ is not None else "a number"
    help_ = None
    if isinstance(type_, TensorType) and not type_.is_scalar:
        help_ = "choose element by element with `select(cond, a, b)`"
    ctx.report(
        "E2114",
        f"a condition must be a scalar `bool`, not `{shown}`",
        node.condition.span,
        help=help_,
    )
    return None


Branch = tuple[OpenRegion, tuple[Value, ...], Operand]


def _branch(ctx: Context, check: Callable[[], Operand], params: tuple[Value, ...] = ()) -> Branch:
    with ctx.open_region() as region, ctx.inner_scope():
        operand = check()
    return region, params, operand


def _join(
    ctx: Context,
    branches: Sequence[Branch],
    spans: Sequence[Span],
    expected: Type | None,
    span: Span,
) -> tuple[tuple[Region, ...], Type] | None:
    """Branches as regions of one result type; reports E2115 when they differ."""
    if any(isinstance(operand, ErrorOperand) for _, _, operand in branches):
        return None
    if any(isinstance(operand, SubOperand) for _, _, operand in branches):
        ctx.report("E1208", "a branch cannot give a child block", span)
        return None
    type_ = expected if expected is not None else _branch_type(branches)
    regions: list[Region] = []
    for (region, params, operand), place in zip(branches, spans, strict=True):
        found = value_type(operand)
        if type_ is not None and found is not None and not ctx.same_type(found, type_):
            _differ(ctx, found, type_, place, expected, spans[0])
            return None
        with ctx.open_region(region):
            value = ctx.coerce(operand, type_, place)
        if value is None:
            return None
        if type_ is None:
            type_ = value.type
        regions.append(Region(params, tuple(region.ops), (value,)))
    assert type_ is not None
    return tuple(regions), type_


def _branch_type(branches: Sequence[Branch]) -> Type | None:
    """The type that the first branch with one of its own has."""
    for _, _, operand in branches:
        found = value_type(operand)
        if found is not None:
            return found
    for _, _, operand in branches:
        if isinstance(operand, SomeOperand):
            inner = value_type(operand.inner)
            if inner is not None:
                return OptionalType(inner)
    return None


def _differ(
    ctx: Context, found: Type, type_: Type, span: Span, expected: Type | None, first: Span
) -> None:
    if expected is not None:
        ctx.type_error(found, type_, span)
        return
    ctx.report(
        "E2115",
        "the branches have different types",
        span,
        label=f"this is `{found}`",
        related=[(first, f"this is `{type_}`")],
    )


# --- match -------------------------------------------------------------------------------------


def match_expr(ctx: Context, node: tree.Match, expected: Type | None) -> Operand:
    subject = ctx.expr(node.subject)
    match subject:
        case ErrorOperand():
            return BROKEN
        case SubOperand(optional=True):
            return _match_sub(ctx, node, subject, expected)
        case ValueOperand(value) if isinstance(value.type, OptionalType):
            return _match_optional(ctx, node, value, value.type, expected)
        case ValueOperand(value) if isinstance(value.type, EnumType):
            return _match_enum(ctx, node, value, value.type, expected)
        case NoneOperand() | SomeOperand():
            made = ctx.coerce(subject, None, node.subject.span)
            if made is None or not isinstance(made.type, OptionalType):
                return BROKEN
            return _match_optional(ctx, node, made, made.type, expected)
        case _:
            shown = value_type(subject)
            ctx.report(
                "E2117",
                f"`match` takes an optional or an enum, not `{shown or 'a number'}`",
                node.subject.span,
            )
            return BROKEN


def _arms(
    ctx: Context,
    node: tree.Match,
    wanted: Sequence[str],
    find: Callable[[tree.ArmPattern], str | None],
) -> dict[str, tree.Arm] | None:
    """The arm for each of the wanted cases; reports E2117, E2118."""
    chosen: dict[str, tree.Arm] = {}
    rest: tree.Arm | None = None
    for arm in node.arms:
        if isinstance(arm.pattern, tree.WildcardPattern):
            rest = rest or arm
            continue
        key = find(arm.pattern)
        if key is None:
            return None
        if key in chosen or rest is not None:
            ctx.report("E2117", f"`{key}` is matched already", arm.pattern.span)
            return None
        chosen[key] = arm
    missing = [key for key in wanted if key not in chosen]
    if missing and rest is None:
        listed = ", ".join(f"`{key}`" for key in missing)
        ctx.report(
            "E2118",
            f"the match does not cover {listed}",
            node.span,
            help=f"add an arm `{missing[0]} => ...`, or `_ => ...` for the rest",
        )
        return None
    if rest is not None:
        if not missing:
            ctx.report("E2117", "nothing is left for `_` to match", rest.pattern.span)
            return None
        chosen.update(dict.fromkeys(missing, rest))
    return chosen


def _optional_key(ctx: Context) -> Callable[[tree.ArmPattern], str | None]:
    def find(pattern: tree.ArmPattern) -> str | None:
        if isinstance(pattern, tree.SomePattern):
            return "some(v)"
        if isinstance(pattern, tree.NonePattern):
            return "none"
        ctx.report("E2117", "an optional is matched by `some(...)` and `none`", pattern.span)
        return None

    return find


def _match_optional(
    ctx: Context, node: tree.Match, value: Value, type_: OptionalType, expected: Type | None
) -> Operand:
    arms = _arms(ctx, node, ("some(v)", "none"), _optional_key(ctx))
    if arms is None:
        return BROKEN
    some, none = arms["some(v)"], arms["none"]
    held = Value(type_.inner, "", some.span)

    def with_held() -> Operand:
        if isinstance(some.pattern, tree.SomePattern):
            bind_pattern(ctx, some.pattern.pattern, ValueOperand(held))
        return ctx.expr(some.value, expected)

    branches = [
        _branch(ctx, with_held, (held,)),
        _branch(ctx, lambda: ctx.expr(none.value, expected)),
    ]
    joined = _join(ctx, branches, [some.value.span, none.value.span], expected, node.span)
    if joined is None:
        return BROKEN
    regions, result = joined
    return ValueOperand(ctx.emit("match_optional", (value,), result, node.span, regions=regions))


def _match_sub(
    ctx: Context, node: tree.Match, subject: SubOperand, expected: Type | None
) -> Operand:
    arms = _arms(ctx, node, ("some(v)", "none"), _optional_key(ctx))
    if arms is None:
        return BROKEN
    some, none = arms["some(v)"], arms["none"]
    present = SubOperand(subject.ref, subject.block, subject.args)

    def with_child() -> Operand:
        if isinstance(some.pattern, tree.SomePattern):
            pattern = some.pattern.pattern
            if not isinstance(pattern, tree.NamePattern):
                ctx.report("E2117", "a child block is bound to one name", pattern.span)
                return BROKEN
            if pattern.name.text != "_":
                ctx.scope.names[pattern.name.text] = LocalEntity(pattern.name, present)
        return ctx.expr(some.value, expected)

    branches = [
        _branch(ctx, with_child),
        _branch(ctx, lambda: ctx.expr(none.value, expected)),
    ]
    joined = _join(ctx, branches, [some.value.span, none.value.span], expected, node.span)
    if joined is None:
        return BROKEN
    regions, result = joined
    attrs = {"ref": subject.ref}
    return ValueOperand(ctx.emit("match_sub", (), result, node.span, attrs, regions))


def _match_enum(
    ctx: Context, node: tree.Match, value: Value, type_: EnumType, expected: Type | None
) -> Operand:
    def find(pattern: tree.ArmPattern) -> str | None:
        if not isinstance(pattern, tree.CasePattern):
            ctx.report("E2117", f"`{type_.name}` is matched by its cases", pattern.span)
            return None
        return _case_name(ctx, pattern, type_)

    arms = _arms(ctx, node, type_.cases, find)
    if arms is None:
        return BROKEN
    cases: dict[int, list[int]] = {}
    distinct: dict[int, tree.Arm] = {}
    for number, case in enumerate(type_.cases):
        arm = arms[case]
        cases.setdefault(id(arm), []).append(number)
        distinct[id(arm)] = arm
    order = list(distinct.values())
    branches = [_branch(ctx, lambda arm=arm: ctx.expr(arm.value, expected)) for arm in order]  # type: ignore[misc]
    joined = _join(ctx, branches, [arm.value.span for arm in order], expected, node.span)
    if joined is None:
        return BROKEN
    regions, result = joined
    attrs = {"cases": tuple(tuple(cases[id(arm)]) for arm in order)}
    return ValueOperand(ctx.emit("match_enum", (value,), result, node.span, attrs, regions))


def _case_name(ctx: Context, pattern: tree.CasePattern, type_: EnumType) -> str | None:
    *owner, case = pattern.path.parts
    if owner:
        resolver = ctx.resolver()
        entity = resolver.path(tree.Path(tuple(owner), pattern.span))
        if entity is None:
            return None
        if not isinstance(entity, EnumEntity) or entity.type != type_:
            ctx.report("E2117", f"this is not a case of `{type_.name}`", pattern.span)
            return None
    elif case.text not in type_.cases:
        ctx.report(
            "E2117",
            f"`{case.text}` is not a case of `{type_.name}`",
            pattern.span,
            help=did_you_mean(case.text, type_.cases),
        )
        return None
    if case.text not in type_.cases:
        ctx.report(
            "E2107",
            f"enum `{type_.name}` has no case `{case.text}`",
            case.span,
            help=did_you_mean(case.text, type_.cases),
        )
        return None
    if not owner:
        ctx.report(
            "E2117",
            f"write `{type_.name}.{case.text}`",
            pattern.span,
        )
        return None
    return case.text
