"""The syntax tree: what the parser makes of a file, text and places only.

Every node is immutable and carries its span. Names are not resolved, nothing is typed. A part the
parser could not read is an `ErrorExpr` or `ErrorType`, or is missing from its list; the problem is
among the parser's diagnostics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from linnet.diagnostics.span import Span


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier where it stands."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Path:
    """`a.b.c`, at least one name; `crate` may be the first."""

    parts: tuple[Name, ...]
    span: Span

    def __str__(self) -> str:
        return ".".join(part.text for part in self.parts)


# --- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IntLit:
    value: int
    span: Span


@dataclass(frozen=True, slots=True)
class FloatLit:
    value: float
    span: Span


@dataclass(frozen=True, slots=True)
class BoolLit:
    value: bool
    span: Span


@dataclass(frozen=True, slots=True)
class StringLit:
    """`value` has its escapes resolved. No expression has a string's type in 0.1."""

    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class NameExpr:
    """A bare name. Dotted ones are `Field` nodes over it: names are resolved later."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Field:
    """`base.name`: an item of a module, a member of a block, a struct's field, an enum's case."""

    base: Expr
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Tuple:
    items: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ShapeLit:
    """`[a, b]`; an item may be a `PackExpr`."""

    items: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PackExpr:
    """`*S` inside a shape literal."""

    name: Name
    span: Span


UnaryOp = Literal["!", "-", "+"]
BinaryOp = Literal[
    "||", "&&", "==", "!=", "<", "<=", ">", ">=", "|", "^", "&", "+", "-", "*", "/", "%"
]


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnaryOp
    operand: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    op: BinaryOp
    left: Expr
    right: Expr
    op_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """A call's argument, `name` for `name = value`."""

    name: Name | None
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class GenericArg:
    """One of `name<...>`: a type when it parses as one (a bare name included), else dimension
    arithmetic. A bare name or path is always a `NamedType`, to be told apart when resolved."""

    value: Type | Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    callee: Expr
    generics: tuple[GenericArg, ...] | None
    args: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class IndexItem:
    """A plain index expression."""

    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class IndexEllipsis:
    span: Span


@dataclass(frozen=True, slots=True)
class IndexPack:
    """`*s` inside brackets."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class IndexSlice:
    start: Expr | None
    stop: Expr | None
    step: Expr | None
    span: Span


Index = IndexItem | IndexEllipsis | IndexPack | IndexSlice


@dataclass(frozen=True, slots=True)
class Subscript:
    base: Expr
    items: tuple[Index, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Reduction:
    """`sum<f32>[i, *s] body`; `packs[k]` says whether index `k` was written with a star."""

    op: Literal["sum", "prod", "max", "min", "any", "all"]
    dtype: Type | None
    indices: tuple[IndexName, ...]
    body: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class IndexName:
    """An index variable where it is introduced: `i` or `*s`."""

    name: Name
    pack: bool
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class SomePattern:
    pattern: Pattern
    span: Span


@dataclass(frozen=True, slots=True)
class NonePattern:
    span: Span


@dataclass(frozen=True, slots=True)
class CasePattern:
    path: Path
    span: Span


@dataclass(frozen=True, slots=True)
class WildcardPattern:
    span: Span


ArmPattern = SomePattern | NonePattern | CasePattern | WildcardPattern


@dataclass(frozen=True, slots=True)
class Arm:
    pattern: ArmPattern
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Match:
    subject: Expr
    arms: tuple[Arm, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SomeExpr:
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class NoneExpr:
    span: Span


@dataclass(frozen=True, slots=True)
class ErrorExpr:
    span: Span


Expr = (
    IntLit
    | FloatLit
    | BoolLit
    | StringLit
    | NameExpr
    | Field
    | Tuple
    | ShapeLit
    | PackExpr
    | Unary
    | Binary
    | Call
    | Subscript
    | Reduction
    | If
    | Match
    | SomeExpr
    | NoneExpr
    | ErrorExpr
)


# --- types -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedType:
    """A dtype, a generic, an alias, a struct, an enum or a block, with its arguments."""

    path: Path
    generics: tuple[GenericArg, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class TensorTypeExpr:
    """`Tensor[d, *S, ...; T]`; dimensions are expressions, packs `PackExpr`."""

    dims: tuple[Expr, ...]
    dtype: Type
    span: Span


@dataclass(frozen=True, slots=True)
class TupleTypeExpr:
    items: tuple[Type, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ArrayTypeExpr:
    """`[Block<...>; N]`."""

    item: Type
    count: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class OptionalTypeExpr:
    inner: Type
    span: Span


@dataclass(frozen=True, slots=True)
class ErrorType:
    span: Span


Type = NamedType | TensorTypeExpr | TupleTypeExpr | ArrayTypeExpr | OptionalTypeExpr | ErrorType


# --- statements --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamePattern:
    """`_` is a name pattern whose text is `_`."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class TuplePattern:
    items: tuple[Pattern, ...]
    span: Span


Pattern = NamePattern | TuplePattern


@dataclass(frozen=True, slots=True)
class Let:
    pattern: Pattern
    type: Type | None
    value: Expr | For
    span: Span


@dataclass(frozen=True, slots=True)
class LetIndexed:
    """`let y[*s, o] = ...`."""

    name: Name
    indices: tuple[IndexName, ...]
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Var:
    name: Name
    type: Type | None
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Assign:
    name: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Return:
    value: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class StaticFor:
    """`static for p in start..stop { }`, or over a sub array when `stop` is None."""

    pattern: Pattern
    start: Expr
    stop: Expr | None
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class For:
    name: Name
    start: Expr
    stop: Expr
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class While:
    condition: Expr
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Yield:
    value: Expr
    span: Span


Statement = Let | LetIndexed | Var | Assign | Return | StaticFor | For | While | Yield


@dataclass(frozen=True, slots=True)
class Body:
    statements: tuple[Statement, ...]
    span: Span


# --- items -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Generic:
    """`[*]Name: Kind [= default]`."""

    name: Name
    pack: bool
    kind: Name
    default: GenericArg | None
    span: Span


@dataclass(frozen=True, slots=True)
class Param:
    name: Name
    type: Type
    default: Expr | None
    span: Span


RelationOp = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class WhereClause:
    left: Expr
    op: RelationOp
    right: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Const:
    public: bool
    name: Name
    type: Type | None
    value: Expr
    doc: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Alias:
    public: bool
    name: Name
    generics: tuple[Generic, ...]
    type: Type
    doc: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class StructField:
    name: Name
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Struct:
    public: bool
    name: Name
    generics: tuple[Generic, ...]
    fields: tuple[StructField, ...]
    doc: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Enum:
    public: bool
    name: Name
    cases: tuple[Name, ...]
    doc: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class GradClause:
    """`grad(y, dy) { ... }`: `y` names the op's result, `dy` its gradient."""

    result: Name
    gradient: Name
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Function:
    """A `fn`, `op` or `entry`, at module level or in a block."""

    kind: Literal["fn", "op", "entry"]
    public: bool
    name: Name
    generics: tuple[Generic, ...]
    params: tuple[Param, ...]
    result: Type | None
    where: tuple[WhereClause, ...]
    body: Body
    grad: GradClause | None
    doc: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Member:
    """`param`, `buffer`, `state` or `sub`; `optional` when `= none` stands after it.

    `default_span` is where a value other than `none` was given (E4102 or a syntax error).
    """

    kind: Literal["param", "buffer", "state", "sub"]
    name: Name
    type: Type
    optional: bool
    default_span: Span | None
    doc: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class BlockDecl:
    """A block; `items` may hold any item (`fn`, `entry`, nested consts, ...)."""

    public: bool
    name: Name
    generics: tuple[Generic, ...]
    where: tuple[WhereClause, ...]
    members: tuple[Member, ...]
    items: tuple[Item, ...]
    doc: str | None
    span: Span


Item = Const | Alias | Struct | Enum | Function | BlockDecl


@dataclass(frozen=True, slots=True)
class UseName:
    name: Name
    alias: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Use:
    """`use a.b` (names empty, `whole` true), or `use a.b::{x, y as z}`."""

    path: Path
    names: tuple[UseName, ...]
    whole: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Module:
    """One file. `name` is None when the `module` line is missing or broken."""

    name: Path | None
    uses: tuple[Use, ...]
    items: tuple[Item, ...]
    span: Span
