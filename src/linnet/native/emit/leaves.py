"""Values of any type as their scalars and tensors: how they pass calls, branches and loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linnet.diagnostics import InternalError
from linnet.native.emit.dtypes import dtype_of, held, stored
from linnet.native.emit.values import Buffer, Dims, Entry, Items, Lazy, Maybe, Scalar
from linnet.native.emit.writer import Writer
from linnet.types import (
    DType,
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar (`dims` empty), a tensor, or whether an optional is there (`flag`). `guard` numbers
    the flag among the leaves that says whether this one has a value."""

    name: str
    dtype: DType
    dims: Dims
    is_tensor: bool
    flag: bool = False
    guard: int | None = None

    @property
    def kind(self) -> str:
        """The C++ type of a variable that holds it."""
        return f"const {stored(self.dtype)}*" if self.is_tensor else held(self.dtype)


def leaves(type_: Type, name: str) -> list[Leaf]:
    """The leaves of a value called `name`, outer before inner."""
    found: list[Leaf] = []
    _collect(type_, name, None, found)
    return found


def _collect(type_: Type, name: str, guard: int | None, found: list[Leaf]) -> None:
    match type_:
        case TensorType():
            tensor = bool(type_.shape)
            found.append(Leaf(name, dtype_of(type_), type_.dims, tensor, guard=guard))
        case EnumType():
            found.append(Leaf(name, DType.I32, (), False, guard=guard))
        case TupleType(items):
            for k, item in enumerate(items):
                _collect(item, f"{name}_{k}", guard, found)
        case StructType(fields=fields):
            for field, inner in fields:
                _collect(inner, f"{name}_{field}", guard, found)
        case OptionalType(inner):
            found.append(Leaf(f"has_{name}", DType.BOOL, (), False, True, guard))
            _collect(inner, name, len(found) - 1, found)
        case _:
            raise InternalError("native.emit", f"no value of {type_}")


def rebuilt(type_: Type, texts: Iterator[str]) -> Entry:
    """A value whose leaves are the given variables."""
    match type_:
        case TensorType():
            text = next(texts)
            dtype = dtype_of(type_)
            return Buffer(text, dtype, type_.dims) if type_.shape else Scalar(text, dtype)
        case EnumType():
            return Scalar(next(texts), DType.I32)
        case TupleType(items):
            return Items(tuple(rebuilt(item, texts) for item in items))
        case StructType(fields=fields):
            names = {field: k for k, (field, _) in enumerate(fields)}
            return Items(tuple(rebuilt(inner, texts) for _, inner in fields), names)
        case OptionalType(inner):
            has = next(texts)
            return Maybe(has, rebuilt(inner, texts))
        case _:
            raise InternalError("native.emit", f"no value of {type_}")


def taken_apart(w: Writer, entry: Entry, hint: str) -> list[str]:
    """The C++ expression of each leaf, tensors in memory."""
    match entry:
        case Scalar():
            return [entry.text]
        case Buffer():
            return [entry.text]
        case Lazy():
            return [w.in_memory(entry, hint).text]
        case Items(items):
            return [text for item in items for text in taken_apart(w, item, hint)]
        case Maybe(has, inner):
            return [has, *taken_apart(w, inner, hint)]
