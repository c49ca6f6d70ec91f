"""The dtype rule and the shape rule of every row of `linnet.ir.table.OPS`.

`infer` gives an operation's result types from its operands', or raises `InternalError` when the
operation is malformed. Where operands do not decide the result (`cast`, `reshape`, `param`, ...),
the `hint` does, and is checked as far as the operands go.

Elementwise operations take operands of one shape and one dtype: `broadcast` stands before them
where the program's shapes differ. Two extents are one when `equal` says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from linnet.diagnostics import InternalError, Span
from linnet.ir.core import NO_ATTRS, Attrs, Region
from linnet.ir.shape_rules import RULES, Case, Equal, same_type, structural
from linnet.ir.table import OPS
from linnet.types import Type

__all__ = ["Equal", "infer", "same_type", "structural"]


def infer(
    kind: str,
    operands: Sequence[Type],
    attrs: Attrs = NO_ATTRS,
    hint: Sequence[Type] = (),
    *,
    regions: Sequence[Region] = (),
    equal: Equal = structural,
    span: Span | None = None,
) -> tuple[Type, ...]:
    """The result types of an operation; raises `InternalError` when it breaks its row's rules."""
    row = OPS.get(kind)
    if row is None:
        raise InternalError("ir", f"there is no operation `{kind}`", span)
    case = Case(kind, tuple(operands), attrs, tuple(hint), tuple(regions), equal, span)
    if row.operands is not None and len(case.operands) != row.operands:
        raise case.fail(f"{len(case.operands)} operands instead of {row.operands}")
    if row.regions >= 0 and len(case.regions) != row.regions:
        raise case.fail(f"{len(case.regions)} regions instead of {row.regions}")
    missing = sorted(set(row.attrs) - set(attrs))
    if missing:
        raise case.fail(f"the attribute `{missing[0]}` is missing")
    return RULES[kind](case)
