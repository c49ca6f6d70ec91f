"""The intermediate representation: values, one table of operations, functions and blocks."""

from linnet.ir.core import (
    NO_ATTRS,
    NONE_DEFAULT,
    Block,
    Function,
    Generic,
    GenericVar,
    Grad,
    Member,
    Op,
    Param,
    Program,
    Ref,
    Region,
    Sub,
    SubVar,
    Value,
)
from linnet.ir.table import OPS, OpSpec

__all__ = [
    "NONE_DEFAULT",
    "NO_ATTRS",
    "OPS",
    "Block",
    "Function",
    "Generic",
    "GenericVar",
    "Grad",
    "Member",
    "Op",
    "OpSpec",
    "Param",
    "Program",
    "Ref",
    "Region",
    "Sub",
    "SubVar",
    "Value",
]
