"""The types values have.

A shape is a tuple of items, each a dimension or a pack (`*S`, any number of dimensions). Axes of a
generic tensor are counted in items; `Subst` turns packs into dimensions, and whoever holds axis
numbers renumbers them with `expand_axes`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from linnet.dims import Dim, Symbol, fresh_symbol
from linnet.types.dtype import AnyDType, DType

_uids = itertools.count()


@dataclass(frozen=True, slots=True)
class PackVar:
    """A generic shape, `*S: Shape`. `count` stands for the product of its dimensions."""

    name: str
    uid: int
    count: Symbol

    def __str__(self) -> str:
        return f"*{self.name}"


def fresh_pack(name: str) -> PackVar:
    return PackVar(name, next(_uids), fresh_symbol(f"count(*{name})"))


ShapeItem = Dim | PackVar
Shape = tuple[ShapeItem, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """`Tensor[shape; dtype]`; the scalar type `dtype` when the shape is empty."""

    shape: Shape
    dtype: AnyDType

    def __str__(self) -> str:
        if not self.shape:
            return str(self.dtype)
        return f"Tensor[{', '.join(map(str, self.shape))}; {self.dtype}]"

    @property
    def is_scalar(self) -> bool:
        return not self.shape

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The shape of a tensor without packs."""
        dims = tuple(item for item in self.shape if isinstance(item, Dim))
        if len(dims) != len(self.shape):
            raise ValueError(f"{self} has a pack")
        return dims

    @property
    def element_count(self) -> Dim:
        """The number of elements, a pack counting as its `count`."""
        total = Dim.of(1)
        for item in self.shape:
            total = total * (Dim.of(item.count) if isinstance(item, PackVar) else item)
        return total

    def with_dtype(self, dtype: AnyDType) -> TensorType:
        return TensorType(self.shape, dtype)

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(shape, self.dtype)


@dataclass(frozen=True, slots=True)
class TupleType:
    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


@dataclass(frozen=True, slots=True)
class StructType:
    """A nominal record: equal when declaration and arguments are. `fields` follow from both."""

    path: str  # "module::Name"
    name: str
    args: tuple[GenericArg, ...]
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(render_arg, self.args))}>" if self.args else self.name

    def field(self, name: str) -> Type | None:
        return next((type_ for field, type_ in self.fields if field == name), None)


@dataclass(frozen=True, slots=True)
class EnumType:
    path: str
    name: str
    cases: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class OptionalType:
    inner: Type

    def __str__(self) -> str:
        return f"{self.inner}?"


@dataclass(frozen=True, slots=True)
class ErrorType:
    """The type of what could not be checked; silences whatever uses it."""

    def __str__(self) -> str:
        return "?"


Type = TensorType | TupleType | StructType | EnumType | OptionalType | ErrorType

# What a generic parameter is bound to: a dimension, a list of shape items, a dtype.
GenericArg = Dim | Shape | AnyDType

ERROR = ErrorType()


def scalar(dtype: AnyDType) -> TensorType:
    return TensorType((), dtype)


BOOL, I32, I64, F32, F64 = map(scalar, (DType.BOOL, DType.I32, DType.I64, DType.F32, DType.F64))


def render_arg(arg: GenericArg) -> str:
    if isinstance(arg, tuple):
        return f"[{', '.join(map(str, arg))}]"
    return str(arg)
