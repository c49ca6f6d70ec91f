"""From a checked program to the functions of one bound model; one pass a file."""

from linnet.passes.bound import (
    Binding,
    Instance,
    ParamInfo,
    StateInfo,
    bind,
)
from linnet.passes.generics import BindError
from linnet.passes.natives import NativeChoice, NativeQuery, NativeSelector
from linnet.passes.pipeline import Lowered, lower
from linnet.passes.storage import Storage

__all__ = [
    "BindError",
    "Binding",
    "Instance",
    "Lowered",
    "NativeChoice",
    "NativeQuery",
    "NativeSelector",
    "ParamInfo",
    "StateInfo",
    "Storage",
    "bind",
    "lower",
]
