"""Element types, and the generic kinds that range over them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import Enum
from typing import Literal

DTypeClass = Literal["bool", "signed", "unsigned", "float"]


class DType(Enum):
    """A concrete element type. The value is its name in the language."""

    BOOL = "bool"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"

    def __str__(self) -> str:
        return self.value

    # Members are compared and hashed by identity far more often than by name.
    __hash__ = object.__hash__

    @property
    def bits(self) -> int:
        return 8 if self is DType.BOOL else int(self.value.lstrip("biuf"))

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def cls(self) -> DTypeClass:
        if self is DType.BOOL:
            return "bool"
        first = self.value[0]
        return "signed" if first == "i" else "unsigned" if first == "u" else "float"

    @property
    def is_float(self) -> bool:
        return self.cls == "float"

    @property
    def is_integer(self) -> bool:
        return self.cls in ("signed", "unsigned")

    @property
    def is_numeric(self) -> bool:
        return self is not DType.BOOL

    @property
    def integer_range(self) -> tuple[int, int]:
        """`(smallest, largest)` value of an integer dtype."""
        if self.cls == "unsigned":
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


DTYPES: dict[str, DType] = {dtype.value: dtype for dtype in DType}

DTypeKind = Literal["DType", "Numeric", "Integer", "Float"]

# The dtypes each kind admits. A kind is within another when its set is.
KIND_DTYPES: dict[DTypeKind, frozenset[DType]] = {
    "DType": frozenset(DType),
    "Numeric": frozenset(d for d in DType if d.is_numeric),
    "Integer": frozenset(d for d in DType if d.is_integer),
    "Float": frozenset(d for d in DType if d.is_float),
}

_uids = itertools.count()


@dataclass(frozen=True, slots=True)
class DTypeVar:
    """A generic dtype, `T: Float`."""

    name: str
    uid: int
    kind: DTypeKind

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "Float"

    @property
    def is_integer(self) -> bool:
        return self.kind == "Integer"

    @property
    def is_numeric(self) -> bool:
        return self.kind != "DType"


AnyDType = DType | DTypeVar


def fresh_dtype_var(name: str, kind: DTypeKind) -> DTypeVar:
    """A dtype variable unlike every other one, whatever their names."""
    return DTypeVar(name, next(_uids), kind)


def dtypes_of(dtype: AnyDType) -> frozenset[DType]:
    """The concrete dtypes that `dtype` may stand for."""
    return frozenset((dtype,)) if isinstance(dtype, DType) else KIND_DTYPES[dtype.kind]
