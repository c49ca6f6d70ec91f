"""Cache writes, in place where the old cache is not read again."""

from __future__ import annotations

from linnet.backends.natives import Case, Native
from linnet.ir import Op, Value
from linnet.native.emit.dtypes import stored
from linnet.native.emit.layout import dims_of
from linnet.native.emit.values import Buffer
from linnet.native.emit.writer import Writer
from linnet.native.natives.base import KernelWriter
from linnet.types import DType, TensorType


def _cache(w: Writer, op: Op) -> Buffer:
    """The memory to write to: the cache's own, or a copy."""
    cache = w.buffer(op.operands[0])
    if op.attrs.get("in_place"):
        return cache
    out = w.result(op.result)
    w.line(f"copy<{stored(cache.dtype)}>({out.text}, {cache.text}, {w.count(cache.dims)});")
    return out


def _write(row: str, at: str, scalar_at: int | None) -> KernelWriter:
    """`row` and `at` are C++ expressions of row number `r`; `{k}` is operand k."""

    def emit(w: Writer, op: Op) -> None:
        value = w.buffer(op.operands[1])
        texts = {}
        for k, operand in enumerate(op.operands[2:], 2):
            texts[k] = w.scalar(operand).text if k == scalar_at else w.buffer(operand).text
        out = _cache(w, op)
        rows, heads, places, width = (w.size(dim).text for dim in dims_of(op.operands[0]))
        given, count = w.size(value.dims[0]).text, w.size(value.dims[2]).text
        captures = "[&]([[maybe_unused]] int64_t r) -> int64_t { return %s; }"
        first, second = (
            captures % text.format(*(texts.get(k, "") for k in range(len(op.operands))))
            for text in (row, at)
        )
        w.line(f"write_cache({out.text}, {value.text}, {rows}, {heads}, {places}, {given}, "
               f"{count}, {width},")  # fmt: skip
        w.line(f"            {first},")
        w.line(f"            {second});")
        w.define(op.result, out)

    return emit


def _write_tokens(w: Writer, op: Op) -> None:
    value, rows, at = (w.buffer(v) for v in op.operands[1:])
    out = _cache(w, op)
    count, heads, places, width = (w.size(dim).text for dim in dims_of(op.operands[0]))
    tokens = w.size(value.dims[2]).text
    w.line(f"write_tokens({out.text}, {value.text}, {count}, {heads}, {places}, {tokens}, "
           f"{width}, {rows.text}, {at.text});")  # fmt: skip
    w.define(op.result, out)


def _narrow(case: Case) -> str | None:
    """Positions are `i32`, as the library declares them."""
    for name in ("at", "rows", "slots"):
        value: Value | None = case.operands.get(name)
        if value is not None and not (
            isinstance(value.type, TensorType) and value.type.dtype is DType.I32
        ):
            return f"`{name}` is {value.type}"
    return None


_C = "std.nn.cache::"
_NOTE = "in place, the positions alone"
_ALL = frozenset(("equivalent", "fast"))
NATIVES: tuple[Native[KernelWriter], ...] = (
    Native(f"{_C}write_at", "write_at", _NOTE, _write("r", "{2}", 2), _narrow, update=0),
    Native(f"{_C}write_span", "write_span", _NOTE, _write("r", "{2}", 2), _narrow, update=0),
    Native(f"{_C}write_rows", "write_rows", _NOTE, _write("r", "{2}[r]", None), _narrow,
           update=0),
    Native(f"{_C}write_slots", "write_slots", _NOTE, _write("{2}[r]", "{3}", 3), _narrow,
           update=0),
    Native(f"{_C}write_tokens", "write_tokens", _NOTE, _write_tokens, _narrow, update=0),
)  # fmt: skip
