"""The meaning of tuples, structs, optionals and enums."""

from __future__ import annotations

from typing import Any

from linnet.diagnostics import InternalError
from linnet.ir.semantics.model import Call, Some, meaning
from linnet.types import StructType


@meaning("tuple")
def _tuple(call: Call) -> Any:
    return tuple(call.operands)


@meaning("tuple_get")
def _tuple_get(call: Call) -> Any:
    return call.operands[0][call.attrs["index"]]


@meaning("struct")
def _struct(call: Call) -> Any:
    (type_,) = call.types
    if not isinstance(type_, StructType):
        raise InternalError("ir.evaluate", f"`struct` gives {type_}", call.span)
    return {name: v for (name, _), v in zip(type_.fields, call.operands, strict=True)}


@meaning("struct_get")
def _struct_get(call: Call) -> Any:
    return call.operands[0][call.attrs["field"]]


@meaning("some")
def _some(call: Call) -> Any:
    return Some(call.operands[0])


@meaning("none")
def _none(call: Call) -> Any:
    return None


@meaning("enum")
def _enum(call: Call) -> Any:
    return int(call.attrs["case"])
