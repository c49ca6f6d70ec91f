"""One function being written: PyTorch's words, and what it does in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from linnet.backends.emit.dtypes import dtype_of
from linnet.backends.emit.reductions import axes_text
from linnet.backends.emit.writer import Words
from linnet.backends.emit.writer import Writer as Base
from linnet.backends.expr import ADD, ATOM, Expr
from linnet.backends.names import attribute
from linnet.dims import Dim
from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.torch.emit import elementwise, reductions
from linnet.torch.emit.dtypes import carried
from linnet.types import DType, TensorType

if TYPE_CHECKING:
    from linnet.torch.emit.module import ModuleWriter

_INDEXABLE = frozenset((DType.I32, DType.I64, DType.U16, DType.U32, DType.U64))


class Writer(Base):
    """Tensors may share memory with states and inputs, which kernels and writes change in place."""

    words = Words(
        home="torch", concat="cat", axis="dim", swap="transpose", permute="permute",
        device=", device=device", numbers_first=True,
    )  # fmt: skip
    memory = frozenset("?")
    module: ModuleWriter

    def __init__(self, module: ModuleWriter, function: Function, body: Region) -> None:
        super().__init__(module, function, body)
        self.subs: dict[SubVar, str] = {}
        self.in_sub_loop = 0

    def reads(self, op: Op) -> Sequence[Value]:
        done = op.kind == "state_write" and op.attrs.get("done")
        return () if done else op.operands

    # --- values ---------------------------------------------------------------------------------

    def spelled(self, dtype: DType) -> str:
        return carried(dtype)

    def expanded(self, expr: Expr, dims: Sequence[Dim]) -> str:
        return f"{expr.at(ATOM)}.expand({', '.join(self.size(d).text for d in dims)})"

    def filled(self, expr: Expr, type_: TensorType) -> Expr:
        dtype = dtype_of(type_)
        shape, names = self.shape(type_.dims)
        value = self.number(expr, dtype)
        where = f"dtype={carried(dtype)}, device=device"
        if type_.dims and value.const in (0, 1) and not isinstance(value.const, bool):
            text = f"torch.{'ones' if value.const else 'zeros'}({shape}, {where})"
        else:
            text = f"torch.full({shape}, {value.text}, {where})"
        return Expr(text, rank=len(type_.dims), names=value.names | names)

    def number(self, expr: Expr, dtype: DType) -> Expr:
        """`u64` beyond `i64` has its bits kept."""
        if dtype is not DType.U64 or not expr.host:
            return expr
        if expr.const is not None and int(expr.const) < 2**63:
            return expr
        if expr.const is not None:
            return replace(expr, text=f"({int(expr.const) - 2**64})", const=None, prec=ATOM)
        text = f"({expr.at(ADD)} + {2**63}) % {2**64} - {2**63}"
        return replace(expr, text=text, prec=ADD)

    # --- operations -----------------------------------------------------------------------------

    def absolute(self, expr: Expr) -> str:
        return f"{expr.at(ATOM)}.abs()"

    def cast(self, expr: Expr, source: DType, target: DType) -> Expr:
        return elementwise.cast(self, expr, source, target)

    def binary(self, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
        return elementwise.binary(self, op, a, b, dtype)

    def masked(self, expr: Expr, dtype: DType) -> Expr:
        return elementwise.masked(expr, dtype)

    def indexed(self, x: Expr, op: Op) -> Expr:
        return x

    def index(self, expr: Expr, dtype: DType) -> Expr:
        return expr if dtype in _INDEXABLE else self.cast(expr, dtype, DType.I64)

    def rows(self, x: Expr, axis: int, index: Expr, rank: int) -> str:
        lookup = axis == 0 and x.rank == 2 and rank > 1
        if self.module.options.compiled and not lookup:
            return f"{self.module.helper('picked_inside')}({x.text}, {axis}, {index.text})"
        if rank == 1:
            return f"{x.at(ATOM)}.index_select({axis}, {index.text})"
        if rank == 0:
            return f"{x.at(ATOM)}.index_select({axis}, {index.at(ATOM)}.reshape(1)).squeeze({axis})"
        if lookup:
            return f"F.embedding({index.text}, {x.text})"
        return f"{self.module.helper('picked')}({x.text}, {axis}, {index.text})"

    def position(self, index: Expr) -> Expr:
        if index.bounds is None or index.bounds[0] >= 0:
            return index
        return replace(index, text=f"{self.module.helper('position')}({index.text})", prec=ATOM)

    def inside(self, index: Expr, dtype: DType, extent: Dim) -> Expr:
        if dtype.cls == "unsigned" and dtype is not DType.U64:  # u64 is held as the bits of i64
            return index
        size = self.size(extent)
        text = f"{self.module.helper('not_negative')}({index.text}, {size.text})"
        return replace(index, text=text, prec=ATOM, names=index.names | size.names)

    def reduced(self, a: Expr, kind: str, axes: Sequence[int], dtype: DType) -> str:
        return reductions.reduced(self, a, kind, axes, dtype)

    def extreme(self, op: Op, a: Expr, axes: Sequence[int]) -> str:
        kind = op.attrs["op"]
        if dtype_of(op.result.type) is DType.U64:
            return super().extreme(op, a, axes)
        return f"{self.module.helper(f'reduced_{kind}')}({a.text}, {axes_text(axes)})"

    def running(self, a: Expr, axis: int, dtype: DType) -> str:
        extra = f", dtype={carried(dtype)}" if dtype.is_integer else ""
        return f"torch.cumsum({a.text}, {axis}{extra})"

    # --- blocks ---------------------------------------------------------------------------------

    def ref(self, ref: Ref) -> str:
        text = "block" if ref.root is None else self.subs[ref.root]
        for step in ref.steps:
            text += f"[{step}]" if isinstance(step, int) else f".{attribute(step)}"
        return text

    def ref_names(self, ref: Ref) -> frozenset[str]:
        return frozenset() if ref.root is None else frozenset((self.subs[ref.root],))
