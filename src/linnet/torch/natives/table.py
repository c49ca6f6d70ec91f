"""The table of native implementations: which op, when, and the code.

`select` takes the first row of an op that applies; `explain` shows the decisions for all of them.
`exact` numerics takes none: every op runs its body.
"""

from __future__ import annotations

from dataclasses import dataclass

from linnet.passes.natives import NativeChoice, NativeQuery, NativeSelector
from linnet.torch.natives import attention, basics, caches, losses, sequences
from linnet.torch.natives.model import NUMERICS, Case, KernelWriter, Native

ROWS: tuple[Native, ...] = (
    *basics.NATIVES, *attention.NATIVES, *caches.NATIVES, *losses.NATIVES,
    *sequences.NATIVES,
)  # fmt: skip

NATIVES: dict[str, tuple[Native, ...]] = {}
for _row in ROWS:
    NATIVES[_row.op] = (*NATIVES.get(_row.op, ()), _row)

KERNELS: dict[str, KernelWriter] = {row.kernel: row.emit for row in ROWS}


@dataclass(frozen=True, slots=True)
class Decision:
    """One native looked at for one call: `reason` says why it does not apply, None: it does."""

    native: Native
    reason: str | None


def decide(
    query: NativeQuery, numerics: str = "fast", device: str = "cpu", trainable: bool = False
) -> tuple[Decision, ...]:
    """What the table says about a call, row by row, up to the first row that applies."""
    names = [p.name for p in query.callee.params]
    operands = dict(zip(names, query.call.operands, strict=True))
    case = Case(query, numerics, device, trainable, operands)
    found: list[Decision] = []
    for native in NATIVES.get(query.origin, ()):
        reason = native.when(case)
        if numerics not in native.numerics:
            reason = f"not under {numerics} numerics"
        found.append(Decision(native, reason))
        if reason is None:
            break
    return tuple(found)


def selector(numerics: str, device: str, trainable: bool) -> NativeSelector | None:
    """What `lower` asks for each call of an op."""
    if numerics == "exact":
        return None

    def select(query: NativeQuery) -> NativeChoice | None:
        decisions = decide(query, numerics, device, trainable)
        if not decisions or decisions[-1].reason is not None:
            return None
        native = decisions[-1].native
        names = [p.name for p in query.callee.params]
        operands = dict(zip(names, query.call.operands, strict=True))
        case = Case(query, numerics, device, trainable, operands)
        attrs = dict(native.attrs(case))
        if native.update is not None:
            attrs["update"] = native.update
        if native.alias:
            attrs["alias"] = native.alias
        return NativeChoice(native.kernel, tuple(native.operands(case)), attrs)

    return select


__all__ = ["KERNELS", "NATIVES", "NUMERICS", "ROWS", "Decision", "decide", "selector"]
