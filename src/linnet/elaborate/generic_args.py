"""Generic arguments as written: `name<...>` for functions, types and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.diagnostics import Span
from linnet.dims import Dim
from linnet.elaborate.binding import bind
from linnet.elaborate.entities import BlockEntity, BrokenEntity, PackEntity
from linnet.ir import Generic
from linnet.syntax import tree
from linnet.types import KIND_DTYPES, GenericArg, dtypes_of

if TYPE_CHECKING:
    from linnet.elaborate.resolve import Resolver


def generic_args(
    resolver: Resolver,
    name: str,
    generics: tuple[Generic, ...],
    written: tuple[tree.GenericArg, ...] | None,
    span: Span,
) -> tuple[GenericArg, ...] | None:
    """All arguments from those written and the defaults; None after reporting."""
    given = written or ()
    required = sum(generic.default is None for generic in generics)
    if not required <= len(given) <= len(generics):
        expected = str(required) if required == len(generics) else f"{required} or more"
        names = ", ".join(generic.name for generic in generics)
        resolver.report(
            "E2111",
            f"`{name}` takes {expected} generic arguments, {len(given)} are given",
            span,
            notes=[f"its generics are {names}"] if generics else (),
        )
        return None
    args: list[GenericArg] = []
    broken = False
    for generic, argument in zip(generics, given, strict=False):
        arg = generic_arg(resolver, generic, argument)
        if arg is None:
            broken = True
            arg = _placeholder(generic)
        args.append(arg)
    for generic in generics[len(given) :]:
        assert generic.default is not None
        args.append(bind(generics[: len(args)], tuple(args)).arg(generic.default))
    return None if broken else tuple(args)


def generic_arg(
    resolver: Resolver, generic: Generic, argument: tree.GenericArg
) -> GenericArg | None:
    """One written argument for one generic; None after reporting."""
    node = argument.value
    if generic.kind == "Dim":
        if isinstance(node, tree.NamedType) and node.generics is None:
            return resolver.shape_dim(node)
        if _is_type(node):
            resolver.report("E2111", f"`{generic.name}` takes a dimension", node.span)
            return None
        return resolver.shape_dim(node)  # type: ignore[arg-type]
    if generic.kind == "Shape":
        return _shape_arg(resolver, generic, node)
    if not _is_type(node):
        resolver.report("E2111", f"`{generic.name}` takes a dtype", node.span)
        return None
    dtype = resolver.dtype(node)  # type: ignore[arg-type]
    if dtype is None:
        return None
    allowed = KIND_DTYPES[generic.kind]  # type: ignore[index]
    if not dtypes_of(dtype) <= allowed:
        resolver.report(
            "E2112",
            f"`{dtype}` is not {_kind_words(generic.kind)}, as `{generic.name}` asks",
            node.span,
        )
        return None
    return dtype


def _shape_arg(
    resolver: Resolver, generic: Generic, node: tree.Type | tree.Expr
) -> GenericArg | None:
    if isinstance(node, tree.ShapeLit):
        return resolver.shape(node.items)
    if isinstance(node, tree.PackExpr):
        return resolver.shape((node,))
    if isinstance(node, tree.NamedType) and node.generics is None:
        entity = resolver.path(node.path)
        if isinstance(entity, PackEntity):
            return (entity.pack,)
        if entity is None:
            return None
    resolver.report("E2111", f"`{generic.name}` takes a shape such as `[A, B]`", node.span)
    return None


def block_type(
    resolver: Resolver, node: tree.Type
) -> tuple[BlockEntity, tuple[GenericArg, ...]] | None:
    """A `sub`'s block and its arguments; None after reporting."""
    from linnet.elaborate.blocks import block_generics

    if not isinstance(node, tree.NamedType):
        if not isinstance(node, tree.ErrorType):
            resolver.report("E4101", "a `sub` must be a block", node.span)
        return None
    entity = resolver.path(node.path)
    if entity is None or isinstance(entity, BrokenEntity):
        return None
    if not isinstance(entity, BlockEntity):
        resolver.world.wrong_kind(str(node.path), entity, "a block", node.span)
        return None
    generics = block_generics(resolver.world, entity)
    args = generic_args(resolver, str(node.path), generics, node.generics, node.span)
    return None if args is None else (entity, args)


def _is_type(node: tree.Type | tree.Expr) -> bool:
    return isinstance(
        node,
        tree.NamedType
        | tree.TensorTypeExpr
        | tree.TupleTypeExpr
        | tree.ArrayTypeExpr
        | tree.OptionalTypeExpr
        | tree.ErrorType,
    )


def _placeholder(generic: Generic) -> GenericArg:
    """Something of the right kind, so that defaults after a broken argument can be bound."""
    match generic.kind:
        case "Dim":
            return Dim.of(1)
        case "Shape":
            return ()
        case kind:
            return min(KIND_DTYPES[kind], key=lambda dtype: dtype.value)  # type: ignore[index]


def _kind_words(kind: str) -> str:
    return {"Numeric": "numeric", "Integer": "an integer dtype", "Float": "a float dtype"}.get(
        kind, "a dtype"
    )
