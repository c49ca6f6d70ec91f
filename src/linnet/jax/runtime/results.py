"""Structs on the way in, results on the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from linnet.backends.errors import InputError
from linnet.types import EnumType, OptionalType, StructType, TensorType, TupleType, Type

if TYPE_CHECKING:
    from linnet.jax.runtime.code import Loaded


def structs(type_: Type, value: Any, loaded: Loaded) -> Any:
    """Checked values with each struct in the generated module's class."""
    match type_:
        case TensorType():
            return value
        case EnumType():
            return np.int32(value)
        case TupleType(items):
            return tuple(structs(t, v, loaded) for t, v in zip(items, value, strict=True))
        case StructType(path=path, fields=fields):
            made = loaded.namespace[loaded.code.generated.structs[path]]
            return made(*(structs(t, v, loaded) for (_, t), v in zip(fields, value, strict=True)))
        case OptionalType(inner):
            present, held = value
            return present, structs(inner, held, loaded)
        case _:
            return value


def outside(type_: Type, value: Any) -> Any:
    """A result as users see it: an absent optional is None, an enum its number. While JAX traces,
    an enum stays the `int32` that it is; whether an optional is there cannot be told then, which is
    an `InputError`."""
    match type_:
        case TupleType(items):
            return tuple(outside(t, v) for t, v in zip(items, value, strict=True))
        case StructType(fields=fields):
            return type(value)(*(outside(t, v) for (_, t), v in zip(fields, value, strict=True)))
        case OptionalType(inner):
            present, held = value
            if isinstance(present, jax.core.Tracer):
                raise InputError(
                    f"a result of type {type_} is None or a value, which is not known while JAX "
                    "traces: call the entry outside jax.jit, jax.vmap and the like"
                )
            return outside(inner, held) if bool(present) else None
        case EnumType():
            return value if isinstance(value, jax.core.Tracer) else int(value)
        case _:
            return value
