"""Types of specialised code: every one a tensor's of a known dtype, an aggregate's or an enum's."""

from __future__ import annotations

from linnet.diagnostics import InternalError
from linnet.types import AnyDType, DType, OptionalType, TensorType, Type


def concrete(dtype: AnyDType) -> DType:
    if not isinstance(dtype, DType):
        raise InternalError("backends.emit", f"the dtype {dtype} was not bound")
    return dtype


def tensor(type_: Type) -> TensorType:
    if not isinstance(type_, TensorType):
        raise InternalError("backends.emit", f"a tensor is needed, not {type_}")
    return type_


def dtype_of(type_: Type) -> DType:
    return concrete(tensor(type_).dtype)


def rank_of(type_: Type) -> int:
    """The rank of a tensor, 0 for everything else."""
    return len(type_.shape) if isinstance(type_, TensorType) else 0


def inner_type(type_: Type) -> Type:
    """What an optional holds, or the type itself."""
    return type_.inner if isinstance(type_, OptionalType) else type_
