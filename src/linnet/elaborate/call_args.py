"""A call's arguments: checked in order, generics inferred from them, then made values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linnet.diagnostics import Span
from linnet.dims import DimError
from linnet.elaborate.context import BROKEN, Context
from linnet.elaborate.entities import ConstEntity
from linnet.elaborate.infer import Inference, mentions
from linnet.elaborate.names import evaluate_entity
from linnet.elaborate.operands import (
    FloatOperand,
    IntOperand,
    NoneOperand,
    Operand,
    SomeOperand,
    ValueOperand,
)
from linnet.elaborate.resolve import Resolver
from linnet.elaborate.world import Signature, SigParam
from linnet.ir import Value
from linnet.syntax import tree
from linnet.types import F64, I64, OptionalType


@dataclass(frozen=True, slots=True)
class Given:
    """An argument that has been checked, and the parameter it is for."""

    param: SigParam
    operand: Operand
    span: Span


def check_arguments(
    ctx: Context,
    params: tuple[SigParam, ...],
    found: Mapping[str, tree.Argument],
    inference: Inference,
) -> list[Given] | None:
    """Checks arguments in the order written, learning generics from those that have a type;
    gives them in the order of the parameters."""
    given: list[Given] = []
    broken = False
    by_name = {param.name: param for param in params}
    for key, argument in found.items():
        param = by_name[key]
        formal = inference.subst().type(param.type)
        open_ = mentions(formal, inference)
        operand = ctx.expr(argument.value, None if open_ else formal)
        if isinstance(operand, ValueOperand):
            inference.unify(param.type, operand.value.type)
        elif not isinstance(operand, IntOperand | FloatOperand | NoneOperand | SomeOperand):
            broken = broken or ctx.coerce(operand, None, argument.span) is None
        given.append(Given(param, operand, argument.value.span))
    given.sort(key=lambda item: params.index(item.param))
    return None if broken else given


def infer_generics(
    ctx: Context, node: tree.Call, name: str, given: list[Given], inference: Inference
) -> bool:
    """Settles every generic; reports E2110 and E2112."""
    inference.solve()
    for item in given:
        # A literal decides only what nothing else has.
        operand, formal = item.operand, item.param.type
        if isinstance(operand, SomeOperand):
            operand = operand.inner
            formal = formal.inner if isinstance(formal, OptionalType) else formal
        if isinstance(operand, IntOperand | FloatOperand):
            inference.unify(formal, I64 if isinstance(operand, IntOperand) else F64)
    inference.solve()
    inference.add_defaults()
    unknown = inference.unknown()
    if unknown:
        listed = ", ".join(f"`{generic.name}`" for generic in unknown)
        ctx.report(
            "E2110",
            f"{listed} of `{name}` cannot be inferred from the arguments",
            node.span,
            help=f"write the generic arguments out: `{name}<...>(...)`",
        )
        return False
    misfit = inference.misfit()
    if misfit is not None:
        arg = inference.bound[misfit.var]
        ctx.report(
            "E2112",
            f"`{arg}` is not of kind {misfit.kind}, as `{misfit.name}` of `{name}` asks",
            node.span,
        )
        return False
    return True


def argument_values(
    ctx: Context, sig: Signature, given: list[Given], inference: Inference
) -> tuple[Value, ...] | None:
    """Arguments as values of the parameters' types, defaults filled in."""
    by_name = {item.param.name: item for item in given}
    values: list[Value] = []
    broken = False
    subst = inference.subst()
    for param in sig.params:
        try:
            formal = subst.type(param.type)
        except DimError as error:
            ctx.world.too_large(error, param.span)
            return None
        item = by_name.get(param.name)
        if item is None:
            assert param.default is not None
            operand = default_operand(ctx, sig, param, inference)
            value = ctx.coerce(operand, formal, param.default.span)
        else:
            value = ctx.coerce(item.operand, formal, item.span)
        broken = broken or value is None
        if value is not None:
            values.append(value)
    return None if broken else tuple(values)


def default_operand(ctx: Context, sig: Signature, param: SigParam, inference: Inference) -> Operand:
    """A parameter's default: a compile-time number, a bool or `none`."""
    node = param.default
    assert node is not None
    if isinstance(node, tree.NoneExpr):
        return NoneOperand()
    if isinstance(node, tree.BoolLit):
        return ctx.expr(node)
    resolver = Resolver(ctx.world, sig.entity.module, sig.scope, [])
    if isinstance(node, tree.NameExpr):
        entity = sig.scope.lookup(node.name.text)
        if isinstance(entity, ConstEntity):
            return evaluate_entity(ctx, entity, node.span)
    number = resolver.number(node)
    if number is None:
        return BROKEN
    if isinstance(number, IntOperand):
        return IntOperand(inference.subst().dim(number.dim))
    return number
