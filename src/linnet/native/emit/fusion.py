"""Operations that one kernel does together.

    y = linear(x, w)                     w: two matrices that lie together, as many rows each
    out = silu(y[..., :n]) * y[..., n:]

is one product whose two halves meet before they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linnet.dims import Dim
from linnet.ir import Function, Op, Value
from linnet.ir.walk import definitions, walk
from linnet.passes.join import JOINED
from linnet.types import TensorType

_PANEL = 16  # outputs that a packed matrix keeps together


@dataclass(frozen=True, slots=True)
class Gated:
    """A product, the value it makes in the end, and the operations in between."""

    result: Value
    absorbed: tuple[Op, ...]


def gated_products(function: Function) -> dict[Op, Gated]:
    """The products of a function of which one half gates the other by `silu`."""
    makers = definitions(function)
    products = [op for op in walk(function.body) if _is_joined_pair(op, makers)]
    if not products:
        return {}
    users = _users(function)
    found = {op: _gated(op, users) for op in products}
    return {op: gated for op, gated in found.items() if gated is not None}


def _users(function: Function) -> dict[Value, list[Op | None]]:
    """Who reads each value; None for a region's end."""
    users: dict[Value, list[Op | None]] = {}
    regions = [function.body]
    while regions:
        region = regions.pop()
        for op in region.ops:
            regions.extend(op.regions)
            for value in op.operands:
                users.setdefault(value, []).append(op)
        for value in region.results:
            users.setdefault(value, []).append(None)
    return users


def _is_joined_pair(op: Op, makers: Mapping[Value, Op]) -> bool:
    if op.kind != "native" or op.attrs.get("kernel") != "linear" or len(op.operands) != 2:
        return False
    weight = makers.get(op.operands[1])
    if weight is None or weight.kind != "concat" or not weight.attrs.get(JOINED):
        return False
    rows = [_dims(part)[0] for part in weight.operands]
    size = rows[0].constant
    return len(rows) == 2 and rows[0] == rows[1] and size is not None and size % _PANEL == 0


def _gated(op: Op, users: Mapping[Value, Sequence[Op | None]]) -> Gated | None:
    size = _dims(op.result)[-1].constant or 0
    halves: dict[int, Op] = {}
    for user in users.get(op.result, ()):
        start = None if user is None else _half(user, size)
        if user is None or start is None:
            return None
        halves[start] = user
    if len(halves) != 2 or len(users[op.result]) != 2:
        return None
    gate, up = halves[0], halves[1]
    silu = _only(users, gate.result)
    if silu is None or silu.kind != "native" or silu.attrs.get("kernel") != "silu":
        return None
    product, other = _only(users, silu.result), _only(users, up.result)
    if product is None or product is not other or product.kind != "mul":
        return None
    return Gated(product.result, (gate, up, silu, product))


def _half(op: Op, size: int) -> int | None:
    """Which half of the last axis a slice is."""
    if op.kind != "slice" or any(bound is not None for bound in op.attrs["bounds"][:-1]):
        return None
    bound = op.attrs["bounds"][-1]
    if bound is None:
        return None
    start, stop, step = (Dim.of(each).constant for each in bound)
    if step != 1 or start is None or stop is None or stop - start != size // 2:
        return None
    return {0: 0, size // 2: 1}.get(start)


def _only(users: Mapping[Value, Sequence[Op | None]], value: Value) -> Op | None:
    """The one operation that reads a value."""
    found = users.get(value, ())
    return found[0] if len(found) == 1 else None


def _dims(value: Value) -> tuple[Dim, ...]:
    assert isinstance(value.type, TensorType)
    return value.type.dims
