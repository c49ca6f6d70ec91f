"""Types, dimensions and consts: from their syntax to what they mean.

Problems are reported and give None (a dimension) or the error type, so that callers go on.
Divisors and negative dimensions become `Obligation`s, since the clauses that prove them may come
later in the same signature.
"""

from __future__ import annotations

from typing import assert_never

from linnet.diagnostics import Span
from linnet.dims import Dim, DimError, Relation
from linnet.elaborate.binding import bind, struct_type
from linnet.elaborate.entities import (
    AliasEntity,
    BrokenEntity,
    ConstEntity,
    DimEntity,
    DTypeEntity,
    Entity,
    EnumEntity,
    ModuleEntity,
    PackEntity,
    Scope,
    StructEntity,
)
from linnet.elaborate.generic_args import generic_args
from linnet.elaborate.literals import as_float, fits, float_arithmetic, int_arithmetic
from linnet.elaborate.operands import FloatOperand, IntOperand, Number
from linnet.elaborate.world import Obligation, World
from linnet.syntax import tree
from linnet.types import (
    DTYPES,
    ERROR,
    AnyDType,
    ErrorType,
    OptionalType,
    Shape,
    ShapeItem,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
)

# Types grow by naming others twice; past this many parts nobody can use one.
MAX_TYPE_PARTS = 1024
# Declarations that need each other, each above the one it needs; longer chains are a mistake.
MAX_CHAIN = 40
MAX_RANK = 64


class Resolver:
    """Resolves in one scope of one module; `obligations` collects what must be proved."""

    def __init__(
        self, world: World, module: str, scope: Scope, obligations: list[Obligation]
    ) -> None:
        self.world, self.module, self.scope = world, module, scope
        self.obligations = obligations
        self.report = world.reporter.report
        self._parts = 0

    # --- names ---------------------------------------------------------------------------------

    def path(self, path: tree.Path) -> Entity | None:
        """What a dotted path stands for; None after reporting."""
        entity = self.world.find(self.scope, path.parts[0])
        for name in path.parts[1:]:
            if entity is None:
                return None
            if isinstance(entity, BrokenEntity):
                return entity
            if not isinstance(entity, ModuleEntity):
                self.report("E2107", f"`{path}` does not name an item", path.span)
                return None
            entity = self.world.member_of_module(entity.id, name, self.module)
        return entity

    # --- dimensions ----------------------------------------------------------------------------

    def dim(self, node: tree.Expr | tree.NamedType) -> Dim | None:
        """A compile-time integer; reports E2123 for anything else."""
        number = self.number(node)
        if isinstance(number, FloatOperand):
            self.report("E2123", "a dimension must be an integer", node.span)
            return None
        return number.dim if number is not None else None

    def number(self, node: tree.Expr | tree.NamedType) -> Number | None:
        """A compile-time number; None after reporting."""
        match node:
            case tree.IntLit(value):
                return IntOperand(Dim.of(value))
            case tree.FloatLit(value):
                return FloatOperand(value)
            case tree.NameExpr(name):
                return self._entity_number(self.world.find(self.scope, name), name.text, node.span)
            case tree.NamedType(path, None):
                return self._entity_number(self.path(path), str(path), node.span)
            case tree.Field(base=tree.NameExpr(name), name=field):
                path = tree.Path((name, field), node.span)
                return self._entity_number(self.path(path), str(path), node.span)
            case tree.Unary("-" | "+" as op, operand):
                inner = self.number(operand)
                return inner if op == "+" or inner is None else negate(inner)
            case tree.Binary(op, left, right):
                return self._arithmetic(op, left, right, node.span)
            case tree.Call(tree.NameExpr(tree.Name("min" | "max" as op)), None, (a, b)):
                return self._arithmetic(op, a.value, b.value, node.span)
            case tree.ErrorExpr():
                return None
            case _:
                self.report("E2123", "this is not a compile-time integer", node.span)
                return None

    def _entity_number(self, entity: Entity | None, name: str, span: Span) -> Number | None:
        match entity:
            case None | BrokenEntity():
                return None
            case DimEntity(symbol):
                return IntOperand(Dim.of(symbol))
            case ConstEntity():
                value, type_ = self.const(entity)
                if isinstance(value, IntOperand | FloatOperand) and type_ is None:
                    return value
                if value is not None:
                    self.report(
                        "E2123",
                        f"`{name}` has a dtype of its own, so it is not a compile-time integer",
                        span,
                        related=[(entity.decl.span, "declared here")],
                        help="leave the type out of its declaration",
                    )
                return None
            case _:
                self.world.wrong_kind(name, entity, "a compile-time integer", span)
                return None

    def _arithmetic(self, op: str, left: tree.Expr, right: tree.Expr, span: Span) -> Number | None:
        a, b = self.number(left), self.number(right)
        if a is None or b is None:
            return None
        if isinstance(a, IntOperand) and isinstance(b, IntOperand):
            if op in "/%":
                self.need_positive(b.dim, right.span)
            try:
                dim = int_arithmetic(op, a.dim, b.dim)
            except DimError as error:
                self.world.too_large(error, span)
                return None
            if dim is not None:
                return IntOperand(dim)
        else:
            x, y = as_float(a), as_float(b)
            value = None if x is None or y is None else float_arithmetic(op, x, y)
            if value is not None:
                return FloatOperand(value)
        self.report("E2123", f"`{op}` gives no compile-time number here", span)
        return None

    def need_positive(self, divisor: Dim, span: Span) -> None:
        constant = divisor.constant
        if constant is None or constant < 1:
            self.obligations.append(
                Obligation(
                    Relation(divisor, ">", Dim.of(0)),
                    "E2205",
                    f"the divisor `{divisor}` is not known to be positive",
                    span,
                )
            )

    def shape_dim(self, node: tree.Expr | tree.NamedType) -> Dim | None:
        """A dimension of a shape, which must not be negative for sure."""
        dim = self.dim(node)
        if dim is not None and (dim.constant is None or dim.constant < 0):
            self.obligations.append(
                Obligation(
                    Relation(dim, ">=", Dim.of(0)),
                    "E2208",
                    f"the dimension `{dim}` is negative",
                    node.span,
                )
            )
        return dim

    def shape(self, items: tuple[tree.Expr, ...]) -> Shape | None:
        """A shape from expressions and packs; None after reporting."""
        shape: list[ShapeItem] = []
        broken = False
        for item in items:
            if isinstance(item, tree.PackExpr):
                entity = self.world.find(self.scope, item.name)
                if isinstance(entity, PackEntity):
                    shape.append(entity.pack)
                    continue
                broken = True
                if entity is not None and not isinstance(entity, BrokenEntity):
                    self.world.wrong_kind(item.name.text, entity, "a shape", item.span)
                continue
            dim = self.shape_dim(item)
            broken = broken or dim is None
            if dim is not None:
                shape.append(dim)
        if len(items) > MAX_RANK:
            self.report("E2101", f"a shape has at most {MAX_RANK} dimensions", items[0].span)
            return None
        return None if broken else tuple(shape)

    # --- consts --------------------------------------------------------------------------------

    def const(self, entity: ConstEntity) -> tuple[Number | bool | None, Type | None]:
        """A const's value and declared type; value None when it has an error."""
        known = self.world.consts.get(entity)
        if known is not None:
            return known
        if not self.enter(entity, "const"):
            return None, None
        inner = Resolver(self.world, entity.module, entity.scope, self.obligations)
        result = inner._const(entity.decl)
        self.world.resolving.discard(entity)
        return self.world.consts.setdefault(entity, result)

    def _const(self, decl: tree.Const) -> tuple[Number | bool | None, Type | None]:
        type_ = self.type(decl.type) if decl.type is not None else None
        if isinstance(decl.value, tree.BoolLit):
            if type_ is not None and type_ != scalar(DTYPES["bool"]):
                self._const_type_error(decl, type_)
                return None, type_
            return decl.value.value, type_
        value = self.number(decl.value)
        if type_ is None or value is None or isinstance(type_, ErrorType):
            return value, type_
        literal = value.value if isinstance(value, FloatOperand) else value.dim.constant
        dtype = type_.dtype if isinstance(type_, TensorType) and type_.is_scalar else None
        if dtype is None or (literal is not None and not fits(literal, dtype)):
            self._const_type_error(decl, type_)
            return None, type_
        return value, type_

    def _const_type_error(self, decl: tree.Const, type_: Type) -> None:
        if not isinstance(type_, ErrorType):
            self.report(
                "E2105", f"the value does not fit the const's type `{type_}`", decl.value.span
            )

    # --- types ---------------------------------------------------------------------------------

    def type(self, node: tree.Type) -> Type:
        """The type a value may have; blocks are not among them."""
        self._parts += 1
        if self._parts > MAX_TYPE_PARTS:
            self.report("E2101", "this type is too large", node.span)
            return ERROR
        match node:
            case tree.NamedType():
                return self._named(node)
            case tree.TensorTypeExpr(dims, dtype):
                shape = self.shape(dims)
                element = self.dtype(dtype)
                if shape is None or element is None:
                    return ERROR
                return TensorType(shape, element)
            case tree.TupleTypeExpr(items):
                return TupleType(tuple(map(self.type, items)))
            case tree.OptionalTypeExpr(inner):
                return OptionalType(self.type(inner))
            case tree.ArrayTypeExpr():
                self.report("E4101", "an array of blocks can only be a `sub`", node.span)
                return ERROR
            case tree.ErrorType():
                return ERROR
            case _:
                assert_never(node)

    def enter(self, entity: ConstEntity | AliasEntity | StructEntity, what: str) -> bool:
        """Marks a declaration as being resolved; reports E2122 when it already is."""
        name = entity.decl.name
        if entity in self.world.resolving:
            self.report("E2122", f"{what} `{name.text}` is defined by itself", name.span)
            return False
        if len(self.world.resolving) >= MAX_CHAIN:
            self.report(
                "E2122",
                f"{what} `{name.text}` stands behind more than {MAX_CHAIN} declarations that "
                "need one another",
                name.span,
                help="declare what others need above them",
            )
            return False
        self.world.resolving.add(entity)
        return True

    def count_parts(self, type_: Type, span: Span) -> bool:
        """Whether there is room for the parts of `type_`; reports E2101 when not."""
        self._parts += type_parts(type_)
        if self._parts > MAX_TYPE_PARTS:
            self.report("E2101", "this type is too large", span)
        return self._parts <= MAX_TYPE_PARTS

    def dtype(self, node: tree.Type) -> AnyDType | None:
        """A dtype or a generic that stands for one; None after reporting."""
        type_ = self.type(node)
        if isinstance(type_, TensorType) and type_.is_scalar:
            return type_.dtype
        if not isinstance(type_, ErrorType):
            self.report("E1208", f"`{type_}` is not a dtype", node.span)
        return None

    def _named(self, node: tree.NamedType) -> Type:
        entity = self.path(node.path)
        match entity:
            case None | BrokenEntity():
                return ERROR
            case DTypeEntity(dtype):
                self._no_generics(node)
                return scalar(dtype)
            case EnumEntity(type=type_):
                self._no_generics(node)
                return type_
            case StructEntity():
                return self._struct(entity, node)
            case AliasEntity():
                return self._alias(entity, node)
            case _:
                self.world.wrong_kind(str(node.path), entity, "a type", node.span)
                return ERROR

    def _no_generics(self, node: tree.NamedType) -> None:
        if node.generics:
            self.report("E2111", f"`{node.path}` takes no generic arguments", node.span)

    def _alias(self, entity: AliasEntity, node: tree.NamedType) -> Type:
        from linnet.elaborate.generics import alias_info

        info = alias_info(self, entity)
        if info is None:
            return ERROR
        args = generic_args(self, str(node.path), info.generics, node.generics, node.span)
        if args is None or not self.count_parts(info.type, node.span):
            return ERROR
        return bind(info.generics, args).type(info.type)

    def _struct(self, entity: StructEntity, node: tree.NamedType) -> Type:
        from linnet.elaborate.generics import struct_info

        info = struct_info(self, entity)
        if info is None or info.broken:
            return ERROR
        args = generic_args(self, str(node.path), info.generics, node.generics, node.span)
        fields = TupleType(tuple(type_ for _, type_ in info.fields))
        if args is None or not self.count_parts(fields, node.span):
            return ERROR
        return struct_type(entity, info.generics, info.fields, args)


def negate(number: Number) -> Number:
    if isinstance(number, FloatOperand):
        return FloatOperand(-number.value)
    return IntOperand(-number.dim)


def type_parts(type_: Type) -> int:
    """How many parts a type has, counting one that is used twice twice."""
    match type_:
        case TupleType(items):
            return 1 + sum(map(type_parts, items))
        case StructType(fields=fields):
            return 1 + sum(type_parts(inner) for _, inner in fields)
        case OptionalType(inner):
            return 1 + type_parts(inner)
        case _:
            return 1
