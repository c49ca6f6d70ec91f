"""Replacing generic parameters by what they are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from linnet.dims import Dim, Relation, Symbol
from linnet.types.dtype import AnyDType, DType, DTypeVar
from linnet.types.model import (
    EnumType,
    ErrorType,
    GenericArg,
    OptionalType,
    PackVar,
    Shape,
    StructType,
    TensorType,
    TupleType,
    Type,
)


@dataclass(frozen=True, slots=True)
class Subst:
    """A simultaneous substitution. `dims` also holds each bound pack's element count."""

    dims: Mapping[Symbol, Dim] = field(default_factory=dict)
    packs: Mapping[PackVar, Shape] = field(default_factory=dict)
    dtypes: Mapping[DTypeVar, AnyDType] = field(default_factory=dict)

    @staticmethod
    def of(pairs: Mapping[Symbol | PackVar | DTypeVar, GenericArg]) -> Subst:
        """The substitution that binds each variable to its argument; argument kinds must fit."""
        dims: dict[Symbol, Dim] = {}
        packs: dict[PackVar, Shape] = {}
        dtypes: dict[DTypeVar, AnyDType] = {}
        for var, arg in pairs.items():
            if isinstance(var, Symbol) and isinstance(arg, Dim):
                dims[var] = arg
            elif isinstance(var, PackVar) and isinstance(arg, tuple):
                packs[var] = arg
                dims[var.count] = TensorType(arg, DType.BOOL).element_count
            elif isinstance(var, DTypeVar) and isinstance(arg, DType | DTypeVar):
                dtypes[var] = arg
            else:
                raise TypeError(f"{var} cannot be bound to {arg}")
        return Subst(dims, packs, dtypes)

    def dim(self, dim: Dim) -> Dim:
        return dim.substitute(self.dims) if self.dims else dim

    def dtype(self, dtype: AnyDType) -> AnyDType:
        return self.dtypes.get(dtype, dtype) if isinstance(dtype, DTypeVar) else dtype

    def shape(self, shape: Shape) -> Shape:
        items: list[Dim | PackVar] = []
        for item in shape:
            if isinstance(item, PackVar):
                items.extend(self.packs.get(item, (item,)))
            else:
                items.append(self.dim(item))
        return tuple(items)

    def relation(self, relation: Relation) -> Relation:
        return Relation(self.dim(relation.left), relation.op, self.dim(relation.right))

    def arg(self, arg: GenericArg) -> GenericArg:
        match arg:
            case tuple():
                return self.shape(arg)
            case Dim():
                return self.dim(arg)
            case DType() | DTypeVar():
                return self.dtype(arg)
            case _:
                assert_never(arg)

    def type(self, type_: Type) -> Type:
        match type_:
            case TensorType(shape, dtype):
                return TensorType(self.shape(shape), self.dtype(dtype))
            case TupleType(items):
                return TupleType(tuple(map(self.type, items)))
            case StructType(path, name, args, fields):
                return StructType(
                    path,
                    name,
                    tuple(map(self.arg, args)),
                    tuple((field, self.type(inner)) for field, inner in fields),
                )
            case OptionalType(inner):
                return OptionalType(self.type(inner))
            case EnumType() | ErrorType():
                return type_
            case _:
                assert_never(type_)


def expand_axes(shape: Shape, subst: Subst) -> tuple[tuple[int, ...], ...]:
    """For each item of `shape`, the positions it takes in `subst.shape(shape)`."""
    places: list[tuple[int, ...]] = []
    at = 0
    for item in shape:
        width = len(subst.packs.get(item, (item,))) if isinstance(item, PackVar) else 1
        places.append(tuple(range(at, at + width)))
        at += width
    return tuple(places)
