"""Broadcasts, reshapes, permutations, slices and concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linnet.backends.emit.dtypes import tensor
from linnet.backends.emit.writer import Writer
from linnet.backends.expr import ATOM, Expr, joined
from linnet.ir import Op


def emit_broadcast(w: Writer, op: Op) -> None:
    source, target = tensor(op.operands[0].type), tensor(op.result.type)
    a = w.get(op.operands[0])
    if a.host:
        w.define(op.result, a)
        return
    axes: Sequence[int] = op.attrs["axes"]
    rank, operand_rank = len(target.shape), len(source.shape)
    held = range(operand_rank - a.rank, operand_rank)
    at = {rank - axes[i]: i for i in held}  # position from the right -> operand axis
    first = max(at, default=0)
    unit = set()
    for position in range(1, first + 1):
        i = at.get(position)
        if (
            i is None
            or (operand_rank - i) in a.unit
            or (source.dims[i].constant == 1 and target.dims[rank - position].constant != 1)
        ):
            unit.add(position)
    gaps = [p for p in range(1, first + 1) if p not in at]
    text = a.text
    if gaps:
        text = f"{a.at(ATOM)}[{_index(first, set(gaps))}]"
    prec = ATOM if gaps else a.prec
    w.define(
        op.result,
        replace(a, text=text, prec=prec, rank=first, unit=frozenset(unit)),
        hint="rows",
    )


def _index(first: int, gaps: set[int]) -> str:
    """Subscripts that put axes of extent 1 at `gaps`, positions counted from the right."""
    if all(p <= len(gaps) for p in gaps):  # at the end only
        return ", ".join(["..."] + ["None"] * len(gaps)) if first > 2 else _plain(first, gaps)
    return _plain(first, gaps)


def _plain(first: int, gaps: set[int]) -> str:
    parts = ["None" if p in gaps else ":" for p in range(first, 0, -1)]
    while parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def emit_reshape(w: Writer, op: Op) -> None:
    a = w.get(op.operands[0])
    if a.host:
        w.define(op.result, a)
        return
    source, target = tensor(op.operands[0].type), tensor(op.result.type)
    a = w.whole(a, source)
    if source.shape == target.shape:
        w.define(op.result, a)
        return
    sizes = [w.size(d) for d in target.dims]
    inner = ", ".join(s.text for s in sizes) or "()"
    made = replace(
        a, text=f"{a.at(ATOM)}.reshape({inner})", prec=ATOM, rank=len(sizes),
        names=a.names.union(*(s.names for s in sizes)),
    )  # fmt: skip
    w.define(op.result, made, hint="reshaped")


def emit_permute(w: Writer, op: Op) -> None:
    a = w.get(op.operands[0])
    if a.host:
        w.define(op.result, a)
        return
    order: Sequence[int] = op.attrs["order"]
    rank = len(order)
    if a.rank != rank:
        a = w.whole(a, tensor(op.operands[0].type))
    moved = [i for i in range(rank) if order[i] != i]
    if not moved:
        w.define(op.result, a)
        return
    if len(moved) == 2:
        text = f"{a.at(ATOM)}.{w.words.swap}({moved[0]}, {moved[1]})"
    else:
        text = f"{a.at(ATOM)}.{w.words.permute}({', '.join(map(str, order))})"
    unit = frozenset(rank - i for i in range(rank) if (rank - order[i]) in a.unit)
    w.define(op.result, replace(a, text=text, prec=ATOM, unit=unit), hint="permuted")


def emit_concat(w: Writer, op: Op) -> None:
    parts = tuple(w.tensor(v) for v in op.operands)
    if len(parts) == 1:
        w.define(op.result, parts[0])
        return
    inner = ", ".join(p.text for p in parts)
    concat = w.words.function(w.words.concat)
    text = f"{concat}(({inner}), {w.words.axis}={op.attrs['axis']})"
    made = Expr(text, rank=parts[0].rank, names=joined(parts))
    w.define(op.result, made, hint="joined")


def emit_slice(w: Writer, op: Op) -> None:
    a = w.get(op.operands[0])
    source = tensor(op.operands[0].type)
    rank = len(source.shape)
    if a.host:
        w.define(op.result, a)
        return
    names = a.names
    parts: list[str] = []
    for i, bound in enumerate(op.attrs["bounds"]):
        position = rank - i
        if position > a.rank:
            continue
        if bound is None or position in a.unit:
            parts.append(":")
            continue
        start, stop, step = bound
        shown = (start.constant != 0, stop != source.dims[i], step.constant != 1)
        sizes = [w.size(d) if s else None for d, s in zip(bound, shown, strict=True)]
        names = names.union(*(s.names for s in sizes if s is not None))
        first, last, by = ("" if s is None else s.text for s in sizes)
        parts.append(f"{first}:{last}" + f":{by}" * bool(by))
    while parts and parts[-1] == ":":
        parts.pop()
    if not parts:
        w.define(op.result, a)
        return
    leading = 0
    while parts[leading] == ":":
        leading += 1
    if leading > 1 and len(parts) == a.rank:
        parts = ["...", *parts[leading:]]
    made = replace(a, text=f"{a.at(ATOM)}[{', '.join(parts)}]", prec=ATOM, names=names)
    w.define(op.result, made, hint="part")
