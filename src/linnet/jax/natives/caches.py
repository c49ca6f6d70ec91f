"""Cache writes: the positions alone, which XLA does in place."""

from __future__ import annotations

from linnet.jax.natives.model import Native, calling

_C = "std.nn.cache::"
_NOTE = "in place, the positions alone"
NATIVES: tuple[Native, ...] = (
    Native(f"{_C}write_at", "write_at", _NOTE, calling("write_span"), update=0),
    Native(f"{_C}write_span", "write_span", _NOTE, calling("write_span"), update=0),
    Native(f"{_C}write_rows", "write_rows", _NOTE, calling("write_rows"), update=0),
    Native(f"{_C}write_slots", "write_slots", _NOTE, calling("write_slots"), update=0),
    Native(f"{_C}write_tokens", "write_tokens", _NOTE, calling("write_tokens"), update=0),
)
