"""Reductions, contractions and running sums."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import replace

from linnet.backends.expr import ATOM, MUL, Expr, joined
from linnet.ir import Op
from linnet.torch.emit.dtypes import carried, dtype_of, tensor
from linnet.torch.emit.elementwise import masked
from linnet.torch.emit.writer import Writer
from linnet.types import DType

_METHODS = {"sum": "sum", "prod": "prod", "min": "amin", "max": "amax", "any": "any", "all": "all"}


def emit_reduce(w: Writer, op: Op) -> None:
    source = tensor(op.operands[0].type)
    dtype, kind = dtype_of(source), op.attrs["op"]
    axes = tuple(sorted(op.attrs["axes"]))
    rank = len(source.shape)
    a = w.get(op.operands[0])
    if a.host or any(not a.has(rank - axis) for axis in axes):
        a = w.whole(a, source)
    if not axes:
        w.define(op.result, a)
        return
    if dtype is DType.U64 and kind in ("min", "max"):
        name = w.module.helper(f"u64_reduce_{kind}")
        text = f"{name}({a.text}, {_dims(axes, rank)})"
    elif kind == "prod":
        text = a.at(ATOM)
        extra = "" if dtype.is_float else f", dtype={carried(dtype)}"
        for axis in axes:  # from the left, so that those still to come keep their numbers
            text = f"{text}.prod({axis - rank}{extra})"
    else:
        extra = ""
        if kind == "sum" and dtype.is_integer and carried(dtype) != "torch.int64":
            extra = f", dtype={carried(dtype)}"
        text = f"{a.at(ATOM)}.{_METHODS[kind]}({_dims(axes, rank)}{extra})"
    made = _reduced(a, text, axes, rank)
    w.define(op.result, masked(made, dtype) if kind in ("sum", "prod") else made, hint=kind)


def _dims(axes: Sequence[int], rank: int) -> str:
    dims = [axis - rank for axis in axes]
    return str(dims[0]) if len(dims) == 1 else f"({', '.join(map(str, dims))})"


def _reduced(a: Expr, text: str, axes: Sequence[int], rank: int) -> Expr:
    gone = {rank - axis for axis in axes}
    kept = [p for p in range(1, a.rank + 1) if p not in gone]
    unit = frozenset(k + 1 for k, p in enumerate(kept) if p in a.unit)
    return replace(a, text=text, prec=ATOM, rank=len(kept), unit=unit, alias=frozenset())


def emit_cumsum(w: Writer, op: Op) -> None:
    a, dtype = w.tensor(op.operands[0]), dtype_of(op.result.type)
    extra = f", dtype={carried(dtype)}" if dtype.is_integer else ""
    text = f"torch.cumsum({a.text}, {op.attrs['axis']}{extra})"
    w.define(
        op.result,
        masked(replace(a, text=text, prec=ATOM, alias=frozenset()), dtype),
        hint="running",
    )


def emit_contract(w: Writer, op: Op) -> None:
    a, b = w.tensor(op.operands[0]), w.tensor(op.operands[1])
    (left, right), output = op.attrs["inputs"], tuple(op.attrs["output"])
    left, right = tuple(left), tuple(right)
    dtype = dtype_of(op.result.type)
    half = dtype in (DType.F16, DType.BF16) and w.module.options.numerics == "exact"
    if half or (dtype.is_integer and w.module.on_device):
        made = _by_products(w, a, b, left, right, output)
    else:
        made = _matmul(a, b, left, right, output) or _einsum(a, b, left, right, output)
    made = replace(made, rank=len(output), names=joined((a, b)))
    w.define(op.result, masked(made, dtype), hint="product")


def _matmul(
    a: Expr, b: Expr, left: tuple[int, ...], right: tuple[int, ...], output: tuple[int, ...]
) -> Expr | None:
    """`a @ b` where the labels stand as a matrix product of leading batches has them."""
    summed = [label for label in left if label in right and label not in output]
    if len(summed) != 1 or set(left) | set(right) != set(output) | set(summed):
        return None
    k = summed[0]
    shared = [label for label in left if label in right and label in output]
    own = [label for label in left if label not in right]
    other = [label for label in right if label not in left]
    batch = len(shared)
    if len(other) != 1 or tuple(output) != (*shared, *own, *other) or left != (*shared, *own, k):
        return None
    if not own or (batch and len(own) != 1):
        return None
    if right == (*shared, *other, k):
        return Expr(f"{a.at(MUL)} @ {b.at(ATOM)}.mT", MUL)
    if right == (*shared, k, *other):
        return Expr(f"{a.at(MUL)} @ {b.at(MUL + 1)}", MUL)
    return None


def _einsum(
    a: Expr, b: Expr, left: tuple[int, ...], right: tuple[int, ...], output: tuple[int, ...]
) -> Expr:
    letters: dict[int, str] = {}
    for label in (*output, *left, *right):
        letters.setdefault(label, string.ascii_letters[len(letters)])
    pattern = f"{_spelt(left, letters)},{_spelt(right, letters)}->{_spelt(output, letters)}"
    return Expr(f'torch.einsum("{pattern}", {a.text}, {b.text})')


def _spelt(labels: Sequence[int], letters: Mapping[int, str]) -> str:
    return "".join(letters[label] for label in labels)


def _by_products(
    w: Writer, a: Expr, b: Expr, left: tuple[int, ...], right: tuple[int, ...],
    output: tuple[int, ...],
) -> Expr:  # fmt: skip
    """Each product by itself: rounded where it has to be, or of integers, whose matrix products
    GPUs don't have."""
    name = w.module.helper("contract")
    labels = f"{list(left)}, {list(right)}, {list(output)}"
    return Expr(f"{name}({a.text}, {b.text}, {labels})")
