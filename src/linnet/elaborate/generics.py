"""Generic parameter lists, `where` clauses and struct declarations."""

from __future__ import annotations

from linnet.dims import Facts, Relation, fresh_symbol
from linnet.elaborate.entities import (
    AliasEntity,
    BrokenEntity,
    DimEntity,
    DTypeEntity,
    Entity,
    PackEntity,
    Scope,
    StructEntity,
)
from linnet.elaborate.generic_args import generic_arg
from linnet.elaborate.naming import declare
from linnet.elaborate.resolve import Resolver
from linnet.elaborate.world import AliasInfo, StructInfo, WhereRelation
from linnet.ir import Generic, GenericVar
from linnet.syntax import tree
from linnet.types import (
    KIND_DTYPES,
    ErrorType,
    GenericArg,
    Type,
    fresh_dtype_var,
    fresh_pack,
)


def declare_generics(resolver: Resolver, generics: tuple[tree.Generic, ...]) -> tuple[Generic, ...]:
    """Brings generics into the resolver's scope, in order."""
    result: list[Generic] = []
    for decl in generics:
        made = _generic(resolver, decl)
        if made is None:
            declare(resolver.world.reporter, resolver.scope, decl.name, BrokenEntity(), "generics")
            continue
        generic, entity = made
        if generic.default is None and result and result[-1].default is not None:
            resolver.report(
                "E2111",
                f"`{generic.name}` needs a default, since the generic before it has one",
                decl.span,
            )
        declare(resolver.world.reporter, resolver.scope, decl.name, entity, "generics")
        result.append(generic)
    return tuple(result)


def _generic(resolver: Resolver, decl: tree.Generic) -> tuple[Generic, Entity] | None:
    name, kind = decl.name.text, decl.kind.text
    var: GenericVar
    entity: Entity
    if decl.pack != (kind == "Shape"):
        star = "needs a star: `*S: Shape`" if kind == "Shape" else "has a star only as a `Shape`"
        resolver.report("E2111", f"the generic `{name}` {star}", decl.span)
        return None
    if kind == "Dim":
        var = fresh_symbol(name)
        entity = DimEntity(var)
    elif kind == "Shape":
        var = fresh_pack(name)
        entity = PackEntity(var)
    elif kind in KIND_DTYPES:
        var = fresh_dtype_var(name, kind)
        entity = DTypeEntity(var)
    else:
        resolver.report(
            "E1201",
            f"unknown kind `{kind}`",
            decl.kind.span,
            help="kinds are Dim, Shape, DType, Numeric, Integer and Float",
        )
        return None
    default: GenericArg | None = None
    if decl.default is not None:
        default = generic_arg(resolver, Generic(name, kind, var), decl.default)
    return Generic(name, kind, var, default), entity


def where_relations(
    resolver: Resolver, clauses: tuple[tree.WhereClause, ...]
) -> tuple[WhereRelation, ...]:
    """The declared relations; broken clauses are reported and left out."""
    relations: list[WhereRelation] = []
    for clause in clauses:
        left, right = resolver.dim(clause.left), resolver.dim(clause.right)
        if left is not None and right is not None:
            relations.append(WhereRelation(Relation(left, clause.op, right), clause.span))
    return tuple(relations)


def alias_info(resolver: Resolver, entity: AliasEntity) -> AliasInfo | None:
    """An alias's head and the type it names, resolved once; None when it has an error."""
    world = resolver.world
    if entity in world.aliases:
        return world.aliases[entity]
    if not resolver.enter(entity, "type"):
        return None
    inner = Resolver(world, entity.module, Scope(entity.scope), [])
    generics = declare_generics(inner, entity.decl.generics)
    type_ = inner.type(entity.decl.type)
    world.resolving.discard(entity)
    world.discharge(inner.obligations, Facts())
    info = None if isinstance(type_, ErrorType) else AliasInfo(generics, type_)
    return world.aliases.setdefault(entity, info)


def struct_info(resolver: Resolver, entity: StructEntity) -> StructInfo | None:
    """A struct's head and fields, resolved once; None while they are being resolved."""
    world = resolver.world
    known = world.structs.get(entity)
    if known is not None:
        return known
    if not resolver.enter(entity, "struct"):
        return None
    inner = Resolver(world, entity.module, Scope(entity.scope), [])
    errors = world.reporter.errors
    generics = declare_generics(inner, entity.decl.generics)
    fields: dict[str, Type] = {}
    for field in entity.decl.fields:
        if field.name.text in fields:
            resolver.report(
                "E1205", f"there are two fields named `{field.name.text}`", field.name.span
            )
            continue
        fields[field.name.text] = inner.type(field.type)
    world.resolving.discard(entity)
    world.discharge(inner.obligations, Facts())
    broken = world.reporter.errors > errors
    info = StructInfo(generics, tuple(fields.items()), broken)
    return world.structs.setdefault(entity, info)
