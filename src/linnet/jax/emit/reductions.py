"""Reductions, contractions and running sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linnet.backends.expr import ATOM, MUL, Expr, joined
from linnet.ir import Op, Value
from linnet.jax.emit.dtypes import HALF, dtype_of, spelled, tensor
from linnet.jax.emit.writer import Writer
from linnet.types import DType

# Sums of narrower integers come out wider unless told otherwise.
_KEPT = frozenset({DType.I64, DType.U64, *(d for d in DType if d.is_float)})


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
    extra = "" if kind not in ("sum", "prod") or dtype in _KEPT else f", dtype={spelled(dtype)}"
    text = f"{a.at(ATOM)}.{kind}({_dims(axes, rank)}{extra})"
    w.define(op.result, _reduced(a, text, axes, rank), hint=kind)


def _dims(axes: Sequence[int], rank: int) -> str:
    dims = [axis - rank for axis in axes]
    return str(dims[0]) if len(dims) == 1 else f"({', '.join(map(str, dims))})"


def _reduced(a: Expr, text: str, axes: Sequence[int], rank: int) -> Expr:
    gone = {rank - axis for axis in axes}
    kept = [p for p in range(1, a.rank + 1) if p not in gone]
    unit = frozenset(k + 1 for k, p in enumerate(kept) if p in a.unit)
    return replace(a, text=text, prec=ATOM, rank=len(kept), unit=unit)


def emit_cumsum(w: Writer, op: Op) -> None:
    a, dtype = w.tensor(op.operands[0]), dtype_of(op.result.type)
    axis = op.attrs["axis"]
    if dtype in HALF:
        text = f"jnp.cumsum({a.text}, {axis}, dtype=jnp.float32).astype({spelled(dtype)})"
    else:
        extra = "" if dtype in _KEPT else f", dtype={spelled(dtype)}"
        text = f"jnp.cumsum({a.text}, {axis}{extra})"
    w.define(op.result, replace(a, text=text, prec=ATOM), hint="running")


def emit_contract(w: Writer, op: Op) -> None:
    (left, right), output = op.attrs["inputs"], tuple(op.attrs["output"])
    left, right = tuple(left), tuple(right)
    dtype = dtype_of(op.result.type)
    narrow = _narrow_operands(w, op)
    a, b = narrow or (w.tensor(op.operands[0]), w.tensor(op.operands[1]))
    if dtype in HALF and w.module.exact:
        made = _by_products(w, a, b, left, right, output)
    elif narrow:
        made = _einsum(a, b, left, right, output, ", preferred_element_type=jnp.float32")
    else:
        made = _matmul(a, b, left, right, output) or _einsum(a, b, left, right, output)
    made = replace(made, rank=len(output), names=joined((a, b)))
    w.define(op.result, made, hint="product")


def _narrow_operands(w: Writer, op: Op) -> tuple[Expr, Expr] | None:
    """The operands before they were widened to f32, where a product that is summed in f32 can
    take them so: products of f16 and of bf16 are exact in f32."""
    if dtype_of(op.result.type) is not DType.F32 or op.operands[0] is op.operands[1]:
        return None
    makers = [w.makers.get(value.id) for value in op.operands]
    for value, maker in zip(op.operands, makers, strict=True):
        if value.id not in w.pending or maker is None or maker.kind != "cast":
            return None
    sources = [maker.operands[0] for maker in makers if maker is not None]
    kinds = {dtype_of(source.type) for source in sources}
    if len(kinds) != 1 or not kinds <= HALF:
        return None
    for value in op.operands:
        w.get(value)
    a, b = (_whole(w, source) for source in sources)
    return a, b


def _whole(w: Writer, value: Value) -> Expr:
    return w.whole(w.peek(value), tensor(value.type))


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
    a: Expr, b: Expr, left: tuple[int, ...], right: tuple[int, ...], output: tuple[int, ...],
    extra: str = "",
) -> Expr:  # fmt: skip
    letters: dict[int, str] = {}
    for label in (*output, *left, *right):
        letters.setdefault(
            label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[len(letters)]
        )
    a_axes, b_axes, axes = (
        "".join(letters[label] for label in labels) for labels in (left, right, output)
    )
    pattern = f"{a_axes},{b_axes}->{axes}"
    return Expr(f'jnp.einsum("{pattern}", {a.text}, {b.text}{extra})')


def _by_products(
    w: Writer, a: Expr, b: Expr, left: tuple[int, ...], right: tuple[int, ...],
    output: tuple[int, ...],
) -> Expr:  # fmt: skip
    """Each product rounded before it is summed, as the two operations it stands for do."""
    summed = tuple(label for label in dict.fromkeys((*left, *right)) if label not in output)
    order = (*output, *summed)
    name = w.module.helper("line_up")
    sides = [
        f"{name}({e.text}, {list(labels)}, {list(order)})" for e, labels in ((a, left), (b, right))
    ]
    product = f"({sides[0]} * {sides[1]})"
    if summed:
        dims = ", ".join(str(-1 - i) for i in range(len(summed)))
        product += f".sum(({dims},))"
    return Expr(product)
