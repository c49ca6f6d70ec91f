"""Reductions, running sums, and the ways to write a contraction."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from linnet.backends.emit.dtypes import dtype_of, tensor
from linnet.backends.emit.writer import Writer
from linnet.backends.expr import ATOM, MUL, Expr
from linnet.dims.dim import is_at_least
from linnet.ir import Op


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
    places = [axis - rank for axis in axes]
    filled = all(is_at_least(source.dims[axis], 1) for axis in axes)
    extreme = kind in ("min", "max") and not filled
    text = w.extreme(op, a, places) if extreme else w.reduced(a, kind, places, dtype)
    made = _reduced(a, text, axes, rank)
    w.define(op.result, w.masked(made, dtype) if kind in ("sum", "prod") else made, hint=kind)


def axes_text(axes: Sequence[int]) -> str:
    """One axis by its number, several as a tuple."""
    return str(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))})"


def _reduced(a: Expr, text: str, axes: Sequence[int], rank: int) -> Expr:
    gone = {rank - axis for axis in axes}
    kept = [p for p in range(1, a.rank + 1) if p not in gone]
    unit = frozenset(k + 1 for k, p in enumerate(kept) if p in a.unit)
    return replace(a, text=text, prec=ATOM, rank=len(kept), unit=unit, alias=frozenset())


def emit_cumsum(w: Writer, op: Op) -> None:
    a, dtype = w.tensor(op.operands[0]), dtype_of(op.result.type)
    text = w.running(a, op.attrs["axis"], dtype)
    made = replace(a, text=text, prec=ATOM, alias=frozenset())
    w.define(op.result, w.masked(made, dtype), hint="running")


@dataclass(frozen=True, slots=True)
class Contraction:
    """The labels of two operands' axes and of the result's; a label in no result is summed."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    output: tuple[int, ...]

    @staticmethod
    def of(op: Op) -> Contraction:
        left, right = op.attrs["inputs"]
        return Contraction(tuple(left), tuple(right), tuple(op.attrs["output"]))

    @property
    def summed(self) -> tuple[int, ...]:
        both = dict.fromkeys((*self.left, *self.right))
        return tuple(label for label in both if label not in self.output)

    @property
    def one_sided(self) -> bool:
        """Whether a label that only one operand has is summed."""
        return any((n in self.left) != (n in self.right) for n in self.summed)

    def product(self, w: Writer, a: Expr, b: Expr) -> Expr:
        """The shortest way to write it."""
        return self.matmul(a, b) or self.einsum(w, a, b)

    def matmul(self, a: Expr, b: Expr) -> Expr | None:
        """`a @ b` where the labels stand as a matrix product of leading batches has them."""
        left, right = self.left, self.right
        if len(self.summed) != 1 or self.one_sided:
            return None
        (k,) = self.summed
        shared = [label for label in left if label in right and label in self.output]
        own = [label for label in left if label not in right]
        other = [label for label in right if label not in left]
        if len(other) != 1 or self.output != (*shared, *own, *other) or left != (*shared, *own, k):
            return None
        if not own or (shared and len(own) != 1):
            return None
        if right == (*shared, *other, k):
            return Expr(f"{a.at(MUL)} @ {b.at(ATOM)}.mT", MUL)
        if right == (*shared, k, *other):
            return Expr(f"{a.at(MUL)} @ {b.at(MUL + 1)}", MUL)
        return None

    def einsum(self, w: Writer, a: Expr, b: Expr, extra: str = "") -> Expr:
        letters: dict[int, str] = {}
        for label in (*self.output, *self.left, *self.right):
            letters.setdefault(label, string.ascii_letters[len(letters)])
        sides = ",".join(_spelt(labels, letters) for labels in (self.left, self.right))
        pattern = f"{sides}->{_spelt(self.output, letters)}"
        return Expr(f'{w.words.function("einsum")}("{pattern}", {a.text}, {b.text}{extra})')


def _spelt(labels: Sequence[int], letters: Mapping[int, str]) -> str:
    return "".join(letters[label] for label in labels)
