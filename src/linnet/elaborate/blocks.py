"""Block heads: generics, clauses, members and children."""

from __future__ import annotations

from linnet.dims import Facts, Relation
from linnet.elaborate.advice import describe_facts, where_help
from linnet.elaborate.binding import bind
from linnet.elaborate.entities import BlockEntity, FunctionEntity
from linnet.elaborate.generic_args import block_type
from linnet.elaborate.generics import declare_generics, where_relations
from linnet.elaborate.resolve import Resolver
from linnet.elaborate.world import BlockInfo, Obligation, WhereRelation, World
from linnet.ir import Block, Generic, Member, Sub
from linnet.syntax import tree
from linnet.types import ErrorType, OptionalType, TensorType


def block_generics(world: World, entity: BlockEntity) -> tuple[Generic, ...]:
    """A block's generics, declared in its inner scope on first use."""
    known = world.block_generics.get(entity)
    if known is not None:
        return known
    resolver = Resolver(world, entity.module, entity.inner, [])
    # The inner scope holds members already; generics come in beside them.
    world.block_generics[entity] = ()
    generics = declare_generics(resolver, entity.decl.generics)
    world.block_generics[entity] = generics
    world.discharge(resolver.obligations, Facts())
    return generics


def block_head(world: World, entity: BlockEntity) -> tuple[tuple[WhereRelation, ...], Facts]:
    """A block's clauses and the facts they make, resolved once."""
    known = world.block_heads.get(entity)
    if known is not None:
        return known
    block_generics(world, entity)
    obligations: list[Obligation] = []
    resolver = Resolver(world, entity.module, entity.inner, obligations)
    where = where_relations(resolver, entity.decl.where)
    facts = Facts().assume(*(clause.relation for clause in where))
    world.block_heads[entity] = (where, facts)
    world.discharge(obligations, facts)
    return where, facts


def block_info(world: World, entity: BlockEntity) -> BlockInfo:
    """The whole head of a block, members and children included."""
    known = world.blocks.get(entity)
    if known is not None:
        return known
    errors = world.reporter.errors
    generics = block_generics(world, entity)
    where, facts = block_head(world, entity)
    obligations: list[Obligation] = []
    resolver = Resolver(world, entity.module, entity.inner, obligations)
    members: dict[str, Member] = {}
    subs: dict[str, Sub] = {}
    for decl in entity.decl.members:
        if decl.kind == "sub":
            sub = _sub(resolver, decl, facts)
            if sub is not None:
                subs[sub.name] = sub
        else:
            member = _member(resolver, decl)
            if member is not None:
                members[member.name] = member
    world.discharge(obligations, facts)
    methods = {
        name: item.name
        for name, item in entity.inner.names.items()
        if isinstance(item, FunctionEntity) and item.block is entity
    }
    block = Block(
        entity.name,
        generics,
        tuple(clause.relation for clause in where),
        members,
        subs,
        methods,
        entity.decl.public,
        entity.decl.doc,
        entity.decl.span,
    )
    broken = world.reporter.errors > errors
    return world.blocks.setdefault(entity, BlockInfo(entity, generics, where, facts, block, broken))


def _member(resolver: Resolver, decl: tree.Member) -> Member | None:
    type_ = resolver.type(decl.type)
    optional = decl.optional
    if decl.kind == "state" and (optional or isinstance(type_, OptionalType)):
        resolver.report(
            "E4101", "a state cannot be optional: it always exists and starts at zero", decl.span
        )
        return None
    if isinstance(type_, OptionalType):
        if not optional:
            resolver.report(
                "E4101",
                f"a {decl.kind} that may be missing is declared with `= none`",
                decl.span,
                help=f"write `{decl.kind} {decl.name.text}: {type_} = none`",
            )
        type_, optional = type_.inner, True
    if isinstance(type_, ErrorType):
        return None
    if not isinstance(type_, TensorType):
        resolver.report("E4101", f"a {decl.kind} must be a tensor, not `{type_}`", decl.type.span)
        return None
    return Member(decl.kind, decl.name.text, type_, optional, decl.span)  # type: ignore[arg-type]


def _sub(resolver: Resolver, decl: tree.Member, facts: Facts) -> Sub | None:
    node, optional, count = decl.type, decl.optional, None
    if isinstance(node, tree.OptionalTypeExpr):
        node, optional = node.inner, True
    if isinstance(node, tree.ArrayTypeExpr):
        if optional:
            resolver.report("E4101", "an array of blocks cannot be optional", decl.span)
            return None
        count = resolver.shape_dim(node.count)
        if count is None:
            return None
        node = node.item
    resolved = block_type(resolver, node)
    if resolved is None:
        return None
    entity, args = resolved
    _prove_where(resolver.world, entity, args, facts, decl)
    return Sub(decl.name.text, entity.name, args, count, optional, decl.span)


def _prove_where(
    world: World,
    entity: BlockEntity,
    args: tuple[object, ...],
    facts: Facts,
    decl: tree.Member,
) -> None:
    where, _ = block_head(world, entity)
    subst = bind(block_generics(world, entity), args)  # type: ignore[arg-type]
    for clause in where:
        needed: Relation = subst.relation(clause.relation)
        if not facts.proves(needed):
            world.reporter.report(
                "E2206",
                f"`{entity.decl.name.text}` needs `{needed}`, which is not known here",
                decl.type.span,
                related=[(clause.span, "required here")],
                notes=describe_facts(facts),
                help=where_help(facts, needed),
            )
