"""What the meaning of an operation is written against: values, errors, one concrete call.

Values at run time: a tensor is a NumPy array of the dtype's own NumPy type (a scalar has rank 0),
a tuple a Python tuple, a struct a dict by field name, an optional `Some` or None, an enum the
case's number. Nothing is ever changed in place, so values may share memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from linnet.diagnostics import InternalError, Span
from linnet.ir.core import Attrs
from linnet.types import DType, TensorType, Type

Array = np.ndarray[Any, np.dtype[Any]]

NUMPY: dict[DType, np.dtype[Any]] = {
    DType.BOOL: np.dtype(np.bool_),
    DType.I8: np.dtype(np.int8),
    DType.I16: np.dtype(np.int16),
    DType.I32: np.dtype(np.int32),
    DType.I64: np.dtype(np.int64),
    DType.U8: np.dtype(np.uint8),
    DType.U16: np.dtype(np.uint16),
    DType.U32: np.dtype(np.uint32),
    DType.U64: np.dtype(np.uint64),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.F32: np.dtype(np.float32),
    DType.F64: np.dtype(np.float64),
}


class EvaluationError(Exception):
    """The program has no meaning on these inputs: an index out of range, a division by zero."""

    def __init__(self, what: str, span: Span | None = None) -> None:
        self.what, self.span = what, span
        super().__init__(what if span is None else f"{what} at {span}")


@dataclass(frozen=True, slots=True)
class Some:
    """An optional that holds `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor type with numbers for dimensions."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def numpy(self) -> np.dtype[Any]:
        return NUMPY[self.dtype]

    @staticmethod
    def of(type_: TensorType) -> Tensor:
        shape = tuple(dim.constant for dim in type_.dims)
        if None in shape or not isinstance(type_.dtype, DType):
            raise InternalError("ir.evaluate", f"{type_} is not bound to numbers")
        return Tensor(tuple(d for d in shape if d is not None), type_.dtype)


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with everything bound: attributes hold axis numbers and constant dims."""

    kind: str
    operands: tuple[Any, ...]
    attrs: Attrs
    types: tuple[Type, ...]
    inputs: tuple[Type, ...]
    span: Span | None

    @property
    def result(self) -> Tensor:
        """The only result's type, a tensor's."""
        (type_,) = self.types
        if not isinstance(type_, TensorType):
            raise InternalError("ir.evaluate", f"`{self.kind}` gives {type_}", self.span)
        return Tensor.of(type_)

    @property
    def dtype(self) -> DType:
        """The dtype of operand 0."""
        type_ = self.inputs[0]
        if not isinstance(type_, TensorType) or not isinstance(type_.dtype, DType):
            raise InternalError("ir.evaluate", f"`{self.kind}` takes {type_}", self.span)
        return type_.dtype

    def error(self, what: str) -> EvaluationError:
        return EvaluationError(what, self.span)


Meaning = Callable[[Call], Any]
SEMANTICS: dict[str, Meaning] = {}


def meaning(*kinds: str) -> Callable[[Meaning], Meaning]:
    """Registers the meaning of some rows."""

    def register(function: Meaning) -> Meaning:
        SEMANTICS.update(dict.fromkeys(kinds, function))
        return function

    return register


def integer(value: Any) -> int:
    """A constant dimension, or a rank-0 integer tensor, as a Python integer."""
    constant = getattr(value, "constant", value)
    if constant is None:
        raise InternalError("ir.evaluate", f"dimension {value} is not bound to a number")
    return int(constant)
