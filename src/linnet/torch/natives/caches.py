"""Cache writes, in place where the old cache is not read again."""

from __future__ import annotations

from linnet.backends.expr import Expr
from linnet.ir import Op
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.model import KernelWriter, Native, made, number_text, operands_of


def _write(function: str, scalar_at: int | None = None) -> KernelWriter:
    def emit(w: Writer, op: Op) -> Expr:
        exprs = operands_of(w, op)
        texts = [e.text for e in exprs]
        if scalar_at is not None:
            texts[scalar_at] = number_text(w, op.operands[scalar_at], exprs[scalar_at])
        if not op.attrs.get("in_place"):
            texts[0] = f"{exprs[0].at(20)}.clone()"
        return made(op, f"{w.module.helper(function)}({', '.join(texts)})", exprs)

    return emit


_C = "std.nn.cache::"
_NOTE = "in place, the positions alone"
NATIVES: tuple[Native, ...] = (
    Native(f"{_C}write_at", "write_at", _NOTE, _write("write_span", 2), update=0),
    Native(f"{_C}write_span", "write_span", _NOTE, _write("write_span", 2), update=0),
    Native(f"{_C}write_rows", "write_rows", _NOTE, _write("write_rows"), update=0),
    Native(f"{_C}write_slots", "write_slots", _NOTE, _write("write_slots", 3), update=0),
    Native(f"{_C}write_tokens", "write_tokens", _NOTE, _write("write_tokens"), update=0),
)
