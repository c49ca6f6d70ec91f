"""Values between a caller of the evaluator and the evaluator."""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np

from linnet.diagnostics import InternalError
from linnet.ir.semantics.elementwise import scalar_of
from linnet.ir.semantics.model import NUMPY, EvaluationError, Some
from linnet.types import (
    DType,
    EnumType,
    ErrorType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)


def from_outside(type_: Type, value: Any) -> Any:
    """A caller's value: arrays, Python numbers and lists, tuples, dicts, None, a case's name."""
    match type_:
        case TensorType():
            return _tensor(type_, value)
        case TupleType(items):
            return tuple(from_outside(t, v) for t, v in zip(items, value, strict=True))
        case StructType(fields=fields):
            return {name: from_outside(inner, value[name]) for name, inner in fields}
        case OptionalType(inner):
            if value is None:
                return None
            held = value.value if isinstance(value, Some) else value
            return Some(from_outside(inner, held))
        case EnumType(cases=cases):
            if value not in cases:
                raise EvaluationError(f"{value!r} is no case of {type_}")
            return cases.index(value)
        case ErrorType():
            raise InternalError("ir.evaluate", "a value of an unchecked type")
        case _:
            assert_never(type_)


def _tensor(type_: TensorType, value: Any) -> Any:
    """A copy, so that what the caller does to the array later changes nothing kept here."""
    if isinstance(value, np.ndarray | np.generic):
        return np.array(value)
    if not isinstance(type_.dtype, DType):
        return np.array(value)
    if isinstance(value, bool | int | float):
        return scalar_of(value, type_.dtype)
    return np.array(value, NUMPY[type_.dtype])


def to_outside(type_: Type, value: Any) -> Any:
    """The evaluator's value in a caller's terms, arrays copied."""
    match type_:
        case TensorType():
            return np.array(value)
        case TupleType(items):
            return tuple(to_outside(t, v) for t, v in zip(items, value, strict=True))
        case StructType(fields=fields):
            return {name: to_outside(inner, value[name]) for name, inner in fields}
        case OptionalType(inner):
            return None if value is None else to_outside(inner, value.value)
        case EnumType(cases=cases):
            return cases[value]
        case ErrorType():
            raise InternalError("ir.evaluate", "a value of an unchecked type")
        case _:
            assert_never(type_)
