"""What checking an expression gives.

Most expressions give an IR value. Literals and compile-time integers stay flexible until their
context names a dtype; child blocks are not values at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from linnet.diagnostics import Span
from linnet.dims import Dim
from linnet.ir import Ref, Value
from linnet.syntax import tree
from linnet.types import GenericArg, Shape


@dataclass(frozen=True, slots=True)
class IntOperand:
    """A compile-time integer: takes any numeric dtype its context asks for, else i64."""

    dim: Dim


@dataclass(frozen=True, slots=True)
class FloatOperand:
    """A float literal: takes any float dtype its context asks for, else f64."""

    value: float


@dataclass(frozen=True, slots=True)
class NoneOperand:
    """`none`, whose type only the context knows."""


@dataclass(frozen=True, slots=True)
class SomeOperand:
    """`some(...)` of something still flexible."""

    inner: Operand


@dataclass(frozen=True, slots=True)
class ValueOperand:
    value: Value


@dataclass(slots=True, eq=False)
class Label:
    """An index variable. `extent` is the shape items it runs over, several for a pack, and is
    None until an access shows it; `order` puts labels in the order they were introduced."""

    name: tree.Name
    pack: bool
    order: int
    extent: Shape | None = None
    seen: Span | None = None  # the access that showed the extent


@dataclass(frozen=True, slots=True)
class LabelledOperand:
    """A value inside index notation: `labels` name its axes, in order, a pack several."""

    value: Value
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class SubOperand:
    """A child block (`count` None) or an array of them; `block` is the declaration's name."""

    ref: Ref
    block: str
    args: tuple[GenericArg, ...]
    count: Dim | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ErrorOperand:
    """Stands for what had an error: whatever uses it stays silent."""


Operand = (
    IntOperand
    | FloatOperand
    | NoneOperand
    | SomeOperand
    | ValueOperand
    | LabelledOperand
    | SubOperand
    | ErrorOperand
)

Number = IntOperand | FloatOperand

BROKEN = ErrorOperand()


def is_flexible(operand: Operand) -> bool:
    """Whether the context still has a say in the operand's type."""
    return isinstance(operand, IntOperand | FloatOperand | NoneOperand | SomeOperand)
