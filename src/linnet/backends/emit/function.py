"""The code for each kind of operation: what every framework has alike, and a backend's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic

from linnet.backends.emit import aggregates, elementwise, gathers, layout, reductions
from linnet.backends.emit.loops import AnyWriter
from linnet.backends.emit.writer import Writer
from linnet.diagnostics import InternalError
from linnet.ir import Op, Region

Handler = Callable[[AnyWriter, Op], None]
BranchHandler = Callable[[AnyWriter, Op, Callable[[AnyWriter, Region], None]], None]

# What every framework has alike.
SHARED: dict[str, Callable[[Writer, Op], None]] = {
    "const": elementwise.emit_const, "dim": elementwise.emit_dim, "iota": elementwise.emit_iota,
    "cast": elementwise.emit_cast, "select": elementwise.emit_select,
    "broadcast": layout.emit_broadcast, "reshape": layout.emit_reshape,
    "permute": layout.emit_permute, "concat": layout.emit_concat, "slice": layout.emit_slice,
    "gather": gathers.emit_gather, "reduce": reductions.emit_reduce,
    "cumsum": reductions.emit_cumsum, "tuple": aggregates.emit_tuple,
    "tuple_get": aggregates.emit_tuple_get, "struct": aggregates.emit_struct,
    "struct_get": aggregates.emit_struct_get,
    **dict.fromkeys(elementwise.UNARY_KINDS, elementwise.emit_unary),
    **dict.fromkeys(elementwise.BINARY, elementwise.emit_binary),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handlers(Generic[AnyWriter]):
    """A backend's code for each kind of operation; `branching` ones also get the function that
    writes their regions."""

    plain: Mapping[str, Handler[AnyWriter]]
    branching: Mapping[str, BranchHandler[AnyWriter]]

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset((*SHARED, *self.plain, *self.branching))

    def write(self, w: AnyWriter, region: Region) -> None:
        """Writes the region's operations."""
        for op in region.ops:
            handler = self.plain.get(op.kind) or SHARED.get(op.kind)
            if handler is not None:
                handler(w, op)
            elif op.kind in self.branching:
                self.branching[op.kind](w, op, self.write)
            else:
                raise InternalError("backends.emit", f"no code for `{op.kind}`", op.span)
