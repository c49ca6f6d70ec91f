"""Generics and their arguments put together."""

from __future__ import annotations

from linnet.elaborate.entities import StructEntity
from linnet.ir import Generic
from linnet.types import GenericArg, StructType, Subst, Type


def bind(generics: tuple[Generic, ...], args: tuple[GenericArg, ...]) -> Subst:
    """The substitution of generics by arguments of the right kinds."""
    return Subst.of({generic.var: arg for generic, arg in zip(generics, args, strict=False)})


def struct_type(
    entity: StructEntity,
    generics: tuple[Generic, ...],
    fields: tuple[tuple[str, Type], ...],
    args: tuple[GenericArg, ...],
) -> StructType:
    subst = bind(generics, args)
    bound = tuple((field, subst.type(type_)) for field, type_ in fields)
    return StructType(entity.path, entity.decl.name.text, args, bound)
