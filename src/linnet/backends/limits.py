"""What a runtime has no exact way to do.

Each backend lists its own in `linnet/<backend>/limits.py`; its emitter refuses exactly these,
naming the operation and its source line, and nothing is approximated instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linnet.diagnostics import CompileError, Diagnostic, InternalError
from linnet.ir import Op
from linnet.types import DType


@dataclass(frozen=True, slots=True)
class Limit:
    """One row: the operation, on which dtypes of its first operand (none: it is not about dtypes),
    what it is called in messages, why, and what a user can do."""

    op: str
    dtypes: frozenset[DType]
    what: str
    reason: str
    help: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What a runtime does otherwise than the language says, where nothing can be refused: `what`
    happens, and what is done `instead`."""

    what: str
    instead: str


def limit_of(limits: Sequence[Limit], kind: str, dtype: DType | None = None) -> Limit:
    """The row of `limits` for an operation that its emitter cannot write."""
    for limit in limits:
        if limit.op == kind and (dtype is None or dtype in limit.dtypes):
            return limit
    raise InternalError("backends", f"`{kind}` on {dtype} is refused but not listed as a limit")


def refusal(backend: str, limit: Limit, op: Op) -> CompileError:
    """The error that a user gets, at the operation's line."""
    message = f"the {backend} backend cannot run {limit.what}: {limit.reason}"
    return CompileError((Diagnostic("E5301", message, op.span, help=limit.help),))
