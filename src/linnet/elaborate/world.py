"""What one check knows beyond a single function: scopes, signatures, consts, diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linnet.diagnostics import Span
from linnet.dims import DimError, Facts, Relation, Verdict
from linnet.elaborate.advice import describe_facts, where_help
from linnet.elaborate.entities import (
    AliasEntity,
    BlockEntity,
    ConstEntity,
    Entity,
    FunctionEntity,
    Scope,
    StructEntity,
    declared_span,
    kind_of,
)
from linnet.elaborate.operands import Number
from linnet.elaborate.reporter import Reporter, did_you_mean
from linnet.ir import Block, Generic
from linnet.syntax import tree
from linnet.types import Type

if TYPE_CHECKING:
    from linnet.elaborate.incremental import ModuleResult


@dataclass(frozen=True, slots=True)
class SigParam:
    name: str
    type: Type
    default: tree.Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class WhereRelation:
    """A declared clause and where it stands."""

    relation: Relation
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """A function's head. `generics` of a method start with its block's `block_generics` ones."""

    entity: FunctionEntity
    generics: tuple[Generic, ...]
    block_generics: int
    params: tuple[SigParam, ...]
    result: Type | None
    where: tuple[WhereRelation, ...]
    facts: Facts
    scope: Scope
    broken: bool

    @property
    def own_generics(self) -> tuple[Generic, ...]:
        return self.generics[self.block_generics :]


@dataclass(frozen=True, slots=True, eq=False)
class AliasInfo:
    """An alias's generics and the type it names in terms of them."""

    generics: tuple[Generic, ...]
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class StructInfo:
    """A struct's generics and its field types in terms of them."""

    generics: tuple[Generic, ...]
    fields: tuple[tuple[str, Type], ...]
    broken: bool


@dataclass(frozen=True, slots=True, eq=False)
class BlockInfo:
    """A block's head: generics, facts and the declaration that ends up in the program."""

    entity: BlockEntity
    generics: tuple[Generic, ...]
    where: tuple[WhereRelation, ...]
    facts: Facts
    block: Block
    broken: bool


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something a signature needs that is proved once all its clauses are known."""

    relation: Relation
    code: str
    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Mark:
    """How much a world held before a module was checked."""

    sizes: tuple[int, ...]
    diagnostics: int
    errors: int


@dataclass(slots=True, eq=False)
class World:
    """`used_members` are those that the module being checked uses."""

    reporter: Reporter
    modules: dict[str, Scope] = field(default_factory=dict)
    consts: dict[ConstEntity, tuple[Number | bool | None, Type | None]] = field(
        default_factory=dict
    )
    aliases: dict[AliasEntity, AliasInfo | None] = field(default_factory=dict)
    structs: dict[StructEntity, StructInfo] = field(default_factory=dict)
    blocks: dict[BlockEntity, BlockInfo] = field(default_factory=dict)
    block_names: dict[str, BlockEntity] = field(default_factory=dict)
    block_generics: dict[BlockEntity, tuple[Generic, ...]] = field(default_factory=dict)
    block_heads: dict[BlockEntity, tuple[tuple[WhereRelation, ...], Facts]] = field(
        default_factory=dict
    )
    signatures: dict[FunctionEntity, Signature] = field(default_factory=dict)
    # Consts, aliases and structs being resolved right now, to find those that need themselves.
    resolving: set[Entity] = field(default_factory=set)
    used_members: set[tree.Member] = field(default_factory=set)
    # The results of modules done, by id; see incremental.py.
    results: dict[str, ModuleResult] = field(default_factory=dict)

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """What is known of entities, table by table."""
        return (
            self.modules,
            self.consts,
            self.aliases,
            self.structs,
            self.blocks,
            self.block_names,
            self.block_generics,
            self.block_heads,
            self.signatures,
        )

    def mark(self) -> Mark:
        """Where the tables and the report have got to; what comes later is a module's own."""
        self.used_members = set()
        reporter = self.reporter
        sizes = tuple(map(len, self.tables()))
        return Mark(sizes, len(reporter.diagnostics), reporter.errors)

    def find(self, scope: Scope, name: tree.Name) -> Entity | None:
        """The meaning of `name`, or None after reporting E1201."""
        entity = scope.lookup(name.text)
        if entity is None:
            self.reporter.report(
                "E1201",
                f"unknown name `{name.text}`",
                name.span,
                label="not found in this scope",
                help=did_you_mean(name.text, scope.all_names()),
            )
        return entity

    def member_of_module(self, module: str, name: tree.Name, from_module: str) -> Entity | None:
        """`module.name` seen from another module; reports E1201 and E1203."""
        entity = self.modules[module].names.get(name.text)
        if entity is None or (module != from_module and not is_item(entity)):
            known = [n for n, e in self.modules[module].names.items() if is_item(e)]
            self.reporter.report(
                "E1201",
                f"module `{module}` has no item `{name.text}`",
                name.span,
                help=did_you_mean(name.text, known),
            )
            return None
        if module != from_module and not is_public(entity):
            self.reporter.report(
                "E1203",
                f"`{name.text}` is private to module `{module}`",
                name.span,
                related=[(declared_span(entity), "declared here without `pub`")],
                help=f"write `pub` before the declaration of `{name.text}`",
            )
        return entity

    def wrong_kind(self, name: str, entity: Entity, wanted: str, span: Span) -> None:
        self.reporter.report(
            "E1208",
            f"`{name}` is {kind_of(entity)}, not {wanted}",
            span,
            related=[(declared_span(entity), "declared here")],
        )

    def discharge(self, obligations: list[Obligation], facts: Facts) -> None:
        """Proves what a signature needs and reports what is not so."""
        for need in obligations:
            if need.code == "E2208":
                failed = facts.prove(need.relation) is Verdict.REFUTED
            else:
                failed = not facts.proves(need.relation)
            if failed:
                self.reporter.report(
                    need.code,
                    need.message,
                    need.span,
                    notes=describe_facts(facts),
                    help=None if need.code == "E2208" else where_help(facts, need.relation),
                )

    def too_large(self, error: DimError, span: Span) -> None:
        self.reporter.report("E2123", str(error), span)


def is_item(entity: Entity) -> bool:
    """Whether the entity is declared in its module (not imported, not a prelude name)."""
    return declared_span(entity) is not None


def is_public(entity: Entity) -> bool:
    decl = getattr(entity, "decl", None)
    return bool(getattr(decl, "public", False))
