"""Which functions act on each row by itself: a row of the result depends on that row alone.

A row axis is one whose extent is a generic `R` of the function. The function may then be called
with fewer rows, `f(x)[rows] == f(x[rows])`, to the bit: each operation is looked at, and only those
pass that cannot tell how many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from linnet.dims import Dim, Symbol
from linnet.ir import OPS, Function, Op
from linnet.types import PackVar, TensorType, Type

_POINTWISE = frozenset({"unary", "binary", "compare", "select"})


@dataclass(frozen=True, slots=True)
class Rows:
    """The row axis of each parameter (None: it has none) and of the result."""

    params: tuple[int | None, ...]
    result: int


@dataclass(slots=True)
class Rowwise:
    """Finds them, each function and generic once."""

    functions: Mapping[str, Function]
    known: dict[tuple[str, Symbol], Rows | None] = field(default_factory=dict)

    def of(self, name: str, rows: Symbol) -> Rows | None:
        """The row axes of a function, None where its rows are not each by itself."""
        key = (name, rows)
        if key not in self.known:
            self.known[key] = None  # while it is looked at
            self.known[key] = self._find(self.functions[name], rows)
        return self.known[key]

    def _find(self, function: Function, rows: Symbol) -> Rows | None:
        if function.kind == "entry" or function.grad is not None or not function.body.results:
            return None
        if any(rows in r.left.symbols | r.right.symbols for r in function.where):
            return None
        values = [p.value for p in function.params]
        values += [v for op in function.body.ops for v in op.results]
        if not all(_has_one(v.type, rows) for v in values):
            return None
        if not all(self._passes(op, rows) for op in function.body.ops):
            return None
        result = axis_of(function.body.results[0].type, rows)
        if result is None:
            return None
        return Rows(tuple(axis_of(p.type, rows) for p in function.params), result)

    def _passes(self, op: Op, rows: Symbol) -> bool:
        if op.kind == "call":
            return self._call(op, rows)
        if not any(axis_of(v.type, rows) is not None for v in (*op.operands, *op.results)):
            return op.kind in ("const", "param") or not _mentions(op, rows)
        if OPS[op.kind].group in _POINTWISE:
            return True
        rule = _RULES.get(op.kind)
        return rule is not None and rule(op, rows)

    def _call(self, op: Op, rows: Symbol) -> bool:
        callee = self.functions[op.attrs["callee"]]
        found = [
            (generic.var, dim)
            for generic, dim in zip(callee.generics, op.attrs["generics"], strict=True)
            if rows in dim.symbols
        ]
        if not found:
            return not any(axis_of(v.type, rows) is not None for v in op.operands) and _pure(callee)
        if len(found) != 1 or found[0][1] != Dim.of(rows):
            return False
        var = found[0][0]
        return isinstance(var, Symbol) and self.of(callee.name, var) is not None


def axis_of(type_: Type, rows: Symbol) -> int | None:
    """The axis whose extent is `rows`."""
    if not isinstance(type_, TensorType):
        return None
    return next((k for k, item in enumerate(type_.shape) if item == Dim.of(rows)), None)


def _has_one(type_: Type, rows: Symbol) -> bool:
    """Whether a type has at most one row axis, and mentions rows nowhere else."""
    if not isinstance(type_, TensorType):
        return rows not in _symbols(type_)
    held = [item for item in type_.shape if isinstance(item, PackVar) or rows in item.symbols]
    return len(held) <= 1 and all(item == Dim.of(rows) for item in held)


def _symbols(type_: Type) -> frozenset[Symbol]:
    found: set[Symbol] = set()
    stack: list[object] = [type_]
    while stack:
        at = stack.pop()
        if isinstance(at, TensorType):
            found.update(*(item.symbols for item in at.shape if isinstance(item, Dim)))
            continue
        for name in ("items", "inner", "fields"):
            inner = getattr(at, name, ())
            stack += inner if isinstance(inner, tuple) else (inner,)
    return frozenset(found)


def _mentions(op: Op, rows: Symbol) -> bool:
    """Whether an operation without row axes may still know how many rows there are."""
    if op.regions or op.kind in ("state_read", "state_write", "native"):
        return True
    stack: list[object] = list(op.attrs.values())
    while stack:
        at = stack.pop()
        if isinstance(at, Dim) and rows in at.symbols:
            return True
        if isinstance(at, tuple):
            stack += at
    return False


def _pure(callee: Function) -> bool:
    return not any(
        op.regions or op.kind in ("state_read", "state_write", "call") for op in callee.body.ops
    )


# --- operations with row axes ---------------------------------------------------------------------


def _broadcast(op: Op, rows: Symbol) -> bool:
    inner, outer = axis_of(op.operands[0].type, rows), axis_of(op.result.type, rows)
    return inner is None or bool(op.attrs["axes"][inner] == outer)


def _reshape(op: Op, rows: Symbol) -> bool:
    before, after = op.operands[0].type, op.result.type
    here, there = axis_of(before, rows), axis_of(after, rows)
    if here is None or there is None:
        return False
    assert isinstance(before, TensorType) and isinstance(after, TensorType)
    return _product(before.dims[:here]) == _product(after.dims[:there])


def _permute(op: Op, rows: Symbol) -> bool:
    return True


def _concat(op: Op, rows: Symbol) -> bool:
    return bool(axis_of(op.result.type, rows) != op.attrs["axis"])


def _slice(op: Op, rows: Symbol) -> bool:
    axis = axis_of(op.operands[0].type, rows)
    return axis is not None and op.attrs["bounds"][axis] is None and not _mentions(op, rows)


def _gather(op: Op, rows: Symbol) -> bool:
    out = axis_of(op.result.type, rows)
    x, *indices = op.operands
    axis = axis_of(x.type, rows)
    if axis is not None and op.attrs["source"][axis] != ("axis", out):
        return False
    for value, axes in zip(indices, op.attrs["index_axes"], strict=True):
        held = axis_of(value.type, rows)
        if held is not None and axes[held] != out:
            return False
    return out is not None


def _reduce(op: Op, rows: Symbol) -> bool:
    return axis_of(op.operands[0].type, rows) not in op.attrs["axes"]


def _contract(op: Op, rows: Symbol) -> bool:
    labels = set()
    for value, names in zip(op.operands, op.attrs["inputs"], strict=True):
        axis = axis_of(value.type, rows)
        if axis is not None:
            labels.add(names[axis])
    return len(labels) == 1 and labels <= set(op.attrs["output"])


def _cumsum(op: Op, rows: Symbol) -> bool:
    return bool(axis_of(op.operands[0].type, rows) != op.attrs["axis"])


_RULES: dict[str, Callable[[Op, Symbol], bool]] = {
    "broadcast": _broadcast, "reshape": _reshape, "permute": _permute, "concat": _concat,
    "slice": _slice, "gather": _gather, "reduce": _reduce, "contract": _contract,
    "cumsum": _cumsum,
}  # fmt: skip


def _product(dims: Sequence[Dim]) -> Dim:
    made = Dim.of(1)
    for dim in dims:
        made = made * dim
    return made
