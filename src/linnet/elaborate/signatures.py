"""Function heads."""

from __future__ import annotations

from linnet.dims import Facts
from linnet.elaborate.blocks import block_generics, block_head
from linnet.elaborate.entities import FunctionEntity, Scope
from linnet.elaborate.generics import declare_generics, where_relations
from linnet.elaborate.naming import check_not_prelude
from linnet.elaborate.resolve import Resolver
from linnet.elaborate.world import Obligation, Signature, SigParam, WhereRelation, World
from linnet.ir import Generic
from linnet.types import ErrorType, OptionalType, StructType, TupleType, Type


def signature(world: World, entity: FunctionEntity) -> Signature:
    """A function's head, resolved once."""
    known = world.signatures.get(entity)
    if known is not None:
        return known
    errors = world.reporter.errors
    decl = entity.decl
    block: tuple[Generic, ...] = ()
    outer: tuple[WhereRelation, ...] = ()
    facts = Facts()
    if entity.block is not None:
        block = block_generics(world, entity.block)
        outer, facts = block_head(world, entity.block)
    obligations: list[Obligation] = []
    resolver = Resolver(world, entity.module, Scope(entity.scope), obligations)
    own = declare_generics(resolver, decl.generics)
    params = _params(resolver, entity)
    result = resolver.type(decl.result) if decl.result is not None else None
    where = where_relations(resolver, decl.where)
    facts = facts.assume(*(clause.relation for clause in where))
    world.discharge(obligations, facts)
    made = Signature(
        entity,
        (*block, *own),
        len(block),
        params,
        result,
        (*outer, *where),
        facts,
        resolver.scope,
        world.reporter.errors > errors
        or any(map(holds_error, (*(param.type for param in params), result))),
    )
    return world.signatures.setdefault(entity, made)


def holds_error(type_: Type | None) -> bool:
    """Whether a type has a part that could not be resolved."""
    match type_:
        case ErrorType():
            return True
        case TupleType(items):
            return any(map(holds_error, items))
        case StructType(fields=fields):
            return any(holds_error(inner) for _, inner in fields)
        case OptionalType(inner):
            return holds_error(inner)
        case _:
            return False


def _params(resolver: Resolver, entity: FunctionEntity) -> tuple[SigParam, ...]:
    params: list[SigParam] = []
    seen: dict[str, SigParam] = {}
    for decl in entity.decl.params:
        name = decl.name.text
        check_not_prelude(resolver.world.reporter, decl.name)
        param = SigParam(name, resolver.type(decl.type), decl.default, decl.name.span)
        if name in seen and name != "_":
            resolver.report(
                "E1205",
                f"there are two parameters named `{name}`",
                decl.name.span,
                related=[(seen[name].span, "first declared here")],
            )
        if decl.default is None and params and params[-1].default is not None:
            resolver.report(
                "E2102",
                f"`{name}` needs a default, since the parameter before it has one",
                decl.span,
            )
        seen[name] = param
        params.append(param)
    return tuple(params)
