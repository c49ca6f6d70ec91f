"""One function being written: JAX's words, and what it does in its own way.

The function's state is one variable, `state`, rebound by every write: what still has to read the
state before it is assigned first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linnet.backends.emit.dtypes import dtype_of, tensor
from linnet.backends.emit.reductions import axes_text
from linnet.backends.emit.writer import Words
from linnet.backends.emit.writer import Writer as Base
from linnet.backends.expr import ATOM, Expr
from linnet.backends.folding import literal
from linnet.backends.names import quoted
from linnet.dims import Dim
from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.jax.emit import elementwise
from linnet.jax.emit.dtypes import HALF, spelled
from linnet.jax.emit.names import BLOCK, STATE, field
from linnet.jax.emit.state import Element, writes_state
from linnet.jax.emit.sums import CONTRACTED, may_meet_sums
from linnet.types import DType, TensorType

if TYPE_CHECKING:
    from linnet.jax.emit.module import ModuleWriter

# Sums of narrower integers come out wider unless told otherwise.
_KEPT = frozenset({DType.I64, DType.U64, *(d for d in DType if d.is_float)})


class Writer(Base):
    """Arrays never change; a name always means the same one, but for `state`."""

    words = Words(
        home="jnp", concat="concatenate", axis="axis", swap="swapaxes", permute="transpose",
        elsewhere={"rsqrt": "lax", "erf": "lax"},
    )  # fmt: skip
    module: ModuleWriter

    def __init__(self, module: ModuleWriter, function: Function, body: Region) -> None:
        super().__init__(module, function, body)
        self.subs: dict[SubVar, Element] = {}
        self._summed = may_meet_sums(body) if module.exact else frozenset[int]()
        self._values: dict[int, Value] = {}
        self._scratches: dict[tuple[int, str], str] = {}

    # --- state ----------------------------------------------------------------------------------

    def moves(self, expr: Expr) -> bool:
        return STATE in expr.names

    def hold(self, value: Value, expr: Expr) -> None:
        super().hold(value, expr)
        self._values[value.id] = value

    def keep_old_state(self, locked: frozenset[str] = frozenset()) -> None:
        """Assigns what still has to read the present state: `state` is about to be rebound."""
        self.flush(locked)
        before, self.locked = self.locked, self.locked | locked
        for reader in sorted(self.holders.pop(STATE, ())):
            expr = self.env.get(reader)
            if expr is None or STATE not in expr.names or self.left[reader] <= 0:
                continue
            self.assign(self._values[reader], expr, "old")
        self.locked = before

    def before_turns(self, body: Region) -> None:
        if writes_state(self, body):
            self.keep_old_state()

    def scratch(self, wanted: str) -> str:
        """A variable that is read by the next line alone."""
        key = (self.region, wanted)
        if key not in self._scratches:
            self._scratches[key] = self.names.fresh(wanted)
        return self._scratches[key]

    # --- values ---------------------------------------------------------------------------------

    def spelled(self, dtype: DType) -> str:
        return spelled(dtype)

    def expanded(self, expr: Expr, dims: Sequence[Dim]) -> str:
        return f"jnp.broadcast_to({expr.text}, {self.shape(dims)[0]})"

    def filled(self, expr: Expr, type_: TensorType) -> Expr:
        dtype, rank = dtype_of(type_), len(type_.dims)
        if not rank:
            return self.scalar(expr, dtype)
        shape, names = self.shape(type_.dims)
        names = names | expr.names
        known = None if expr.const is None else literal(expr.const)
        if known in ("0", "0.0", "1", "1.0"):
            kind = "zeros" if known.startswith("0") else "ones"
            return Expr(f"jnp.{kind}({shape}, {spelled(dtype)})", rank=rank, names=names)
        value = self.number(expr, dtype)
        return Expr(f"jnp.full({shape}, {value.text}, {spelled(dtype)})", rank=rank, names=names)

    def scalar(self, expr: Expr, dtype: DType) -> Expr:
        """A host number as an array of rank 0."""
        text = f"jnp.{'bool_' if dtype is DType.BOOL else spelled(dtype)[4:]}({expr.text})"
        return Expr(text, names=expr.names)

    def number(self, expr: Expr, dtype: DType) -> Expr:
        """Python's own number where JAX gives it the array's dtype without a loss."""
        if dtype is DType.U64 and expr.host and (expr.const is None or int(expr.const) >= 2**63):
            return self.scalar(expr, dtype)
        return expr

    def meets_sum(self, product: Value) -> bool:
        """Whether it has to be said that the product is rounded: XLA may make one operation of it
        and of a sum, or a difference, that it goes into."""
        return product.id in self._summed and dtype_of(product.type) in CONTRACTED

    # --- operations -----------------------------------------------------------------------------

    def absolute(self, expr: Expr) -> str:
        return f"jnp.abs({expr.text})"

    def cast(self, expr: Expr, source: DType, target: DType) -> Expr:
        return elementwise.cast(self, expr, source, target)

    def binary(self, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
        return elementwise.binary(self, op, a, b, dtype)

    def indexed(self, x: Expr, op: Op) -> Expr:
        """JAX refuses to look into an axis without elements, even where nothing will run."""
        dims, source = tensor(op.operands[0].type).dims, op.attrs["source"]
        empty = [
            i for i, (kind, _) in enumerate(source) if kind == "index" and not dims[i].constant
        ]
        if not empty:
            return x
        text = f"{self.module.helper('padded')}({x.text}, {', '.join(map(str, empty))})"
        return Expr(text, rank=x.rank, unit=x.unit, names=x.names)

    def index(self, expr: Expr, dtype: DType) -> Expr:
        return expr

    def rows(self, x: Expr, axis: int, index: Expr, rank: int) -> str:
        return f"{x.at(ATOM)}[{':, ' * axis}{index.text}]"

    def reduced(self, a: Expr, kind: str, axes: Sequence[int], dtype: DType) -> str:
        extra = "" if kind not in ("sum", "prod") or dtype in _KEPT else f", dtype={spelled(dtype)}"
        return f"{a.at(ATOM)}.{kind}({axes_text(axes)}{extra})"

    def extreme(self, op: Op, a: Expr, axes: Sequence[int]) -> str:
        """JAX has no word for a maximum over an axis that turns out to have no elements."""
        place = str(op.span.file.path) + f":{op.span.line}" if op.span else self.function.name
        name = self.module.helper("extreme")
        return f'{name}({a.text}, "{op.attrs["op"]}", {axes_text(axes)}, {quoted(place)})'

    def running(self, a: Expr, axis: int, dtype: DType) -> str:
        if dtype in HALF:
            return f"jnp.cumsum({a.text}, {axis}, dtype=jnp.float32).astype({spelled(dtype)})"
        extra = "" if dtype in _KEPT else f", dtype={spelled(dtype)}"
        return f"jnp.cumsum({a.text}, {axis}{extra})"

    # --- blocks ---------------------------------------------------------------------------------

    def steps(self, ref: Ref) -> list[tuple[str | int, bool]]:
        """The steps of a Ref, each with whether it numbers an element of stacked blocks."""
        at = str(self.function.block) if ref.root is None else self.subs[ref.root].kind
        blocks, stacked = self.module.program.blocks, False
        found: list[tuple[str | int, bool]] = []
        for step in ref.steps:
            if isinstance(step, int):
                found.append((step, stacked))
                continue
            found.append((step, False))
            subs = blocks[at].subs if at in blocks else {}
            stacked = (at, step) in self.module.options.stacked
            at = subs[step].block if step in subs else at
        return found

    def ref(self, ref: Ref) -> str:
        text = BLOCK if ref.root is None else self.subs[ref.root].block
        for step, stacked in self.steps(ref):
            if stacked:
                text = f"{self.module.helper('element')}({text}, {step})"
            else:
                text += f"[{step}]" if isinstance(step, int) else f".{field(step)}"
        return text

    def ref_names(self, ref: Ref) -> frozenset[str]:
        return frozenset() if ref.root is None else frozenset((self.subs[ref.root].block,))
