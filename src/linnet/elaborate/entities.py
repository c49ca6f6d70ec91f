"""What a name can stand for, and the scopes that hold names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from linnet.diagnostics import Span
from linnet.dims import Symbol
from linnet.elaborate.operands import Label, Operand
from linnet.ir import Ref
from linnet.syntax import tree
from linnet.types import DType, DTypeVar, EnumType, PackVar, Type


@dataclass(frozen=True, slots=True, eq=False)
class ModuleEntity:
    id: str


@dataclass(frozen=True, slots=True, eq=False)
class ConstEntity:
    decl: tree.Const
    scope: Scope
    module: str


@dataclass(frozen=True, slots=True, eq=False)
class AliasEntity:
    decl: tree.Alias
    scope: Scope
    module: str


@dataclass(frozen=True, slots=True, eq=False)
class StructEntity:
    decl: tree.Struct
    scope: Scope
    module: str
    path: str


@dataclass(frozen=True, slots=True, eq=False)
class EnumEntity:
    decl: tree.Enum
    module: str
    type: EnumType


@dataclass(frozen=True, slots=True, eq=False)
class FunctionEntity:
    """A function; `block` is set for methods, whose `scope` is the block's."""

    decl: tree.Function
    scope: Scope
    module: str
    name: str
    block: BlockEntity | None


@dataclass(frozen=True, slots=True, eq=False)
class BlockEntity:
    """A block; `inner` holds its generics, members, methods and items."""

    decl: tree.BlockDecl
    scope: Scope
    inner: Scope
    module: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class DimEntity:
    symbol: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class PackEntity:
    pack: PackVar


@dataclass(frozen=True, slots=True, eq=False)
class DTypeEntity:
    """A dtype, or a generic that stands for one."""

    dtype: DType | DTypeVar


@dataclass(frozen=True, slots=True, eq=False)
class PreludeEntity:
    """A function of the prelude."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class MemberEntity:
    """A param, buffer or state of the block whose method is being checked."""

    block: BlockEntity
    decl: tree.Member


@dataclass(frozen=True, slots=True, eq=False)
class SubEntity:
    """A child block, or a name bound to one by a loop or a match."""

    block: BlockEntity
    decl: tree.Member


@dataclass(frozen=True, slots=True, eq=False)
class ImportEntity:
    """A name brought in by `use`; `target` is what it stands for."""

    target: Entity
    name: tree.Name


@dataclass(frozen=True, slots=True, eq=False)
class LocalEntity:
    """A parameter or `let`; `lint` when it should be used."""

    name: tree.Name
    operand: Operand
    lint: bool = True


@dataclass(slots=True, eq=False)
class VarEntity:
    """A `var`: `current` is its value where checking has got to."""

    name: tree.Name
    type: Type
    current: Operand


@dataclass(slots=True, eq=False)
class IndexEntity:
    """An index of index notation: `label` learns its extent from the axes it stands at."""

    label: Label


@dataclass(frozen=True, slots=True, eq=False)
class BrokenEntity:
    """A name whose declaration has an error: uses of it are silent."""


Entity = (
    ModuleEntity
    | ConstEntity
    | AliasEntity
    | StructEntity
    | EnumEntity
    | FunctionEntity
    | BlockEntity
    | DimEntity
    | PackEntity
    | DTypeEntity
    | PreludeEntity
    | MemberEntity
    | SubEntity
    | ImportEntity
    | LocalEntity
    | VarEntity
    | IndexEntity
    | BrokenEntity
)


@dataclass(slots=True, eq=False)
class Scope:
    """Names of one `{}`, generic list, block or module; `used` is what was looked up here."""

    parent: Scope | None
    names: dict[str, Entity] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def lookup(self, name: str) -> Entity | None:
        """The innermost meaning of `name`, imports seen through."""
        scope: Scope | None = self
        while scope is not None:
            entity = scope.names.get(name)
            if entity is not None:
                scope.used.add(name)
                return entity.target if isinstance(entity, ImportEntity) else entity
            scope = scope.parent
        return None

    def all_names(self) -> Iterator[str]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent


_KINDS: dict[type, str] = {
    ModuleEntity: "a module",
    ConstEntity: "a const",
    AliasEntity: "a type alias",
    StructEntity: "a struct",
    EnumEntity: "an enum",
    FunctionEntity: "a function",
    BlockEntity: "a block",
    DimEntity: "a dimension",
    PackEntity: "a shape",
    DTypeEntity: "a dtype",
    PreludeEntity: "a prelude function",
    MemberEntity: "a block member",
    SubEntity: "a child block",
    LocalEntity: "a value",
    VarEntity: "a variable",
    IndexEntity: "an index",
}


def kind_of(entity: Entity) -> str:
    """The entity's kind in words, with its article."""
    return _KINDS.get(type(entity), "a name")


def declared_span(entity: Entity) -> Span | None:
    """Where the entity's name was introduced, when that is in a source."""
    match entity:
        case LocalEntity(name=name) | VarEntity(name=name):
            return name.span
        case ConstEntity(decl=d) | AliasEntity(decl=d) | StructEntity(decl=d):
            return d.name.span
        case EnumEntity(decl=e):
            return e.name.span
        case FunctionEntity(decl=f):
            return f.name.span
        case BlockEntity(decl=b):
            return b.name.span
        case IndexEntity(label=label):
            return label.name.span
        case MemberEntity(decl=m) | SubEntity(decl=m):
            return m.name.span
        case _:
            return None


SELF = Ref(None, ())
