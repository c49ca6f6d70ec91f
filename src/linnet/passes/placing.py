"""What code motion asks about operations: is it free to make again, is it worth keeping, can it
fail, is it pure."""

from __future__ import annotations

from collections.abc import Mapping

from linnet.dims.dim import is_at_least
from linnet.ir import OPS, Function, Op
from linnet.ir.walk import callees_first, walk
from linnet.passes.effects import Effects, summary
from linnet.types import TensorType

# Made again wherever needed: constants, and views of what is there anyway.
SOURCES = frozenset({"const", "dim", "iota", "none", "enum"})
VIEWS = frozenset({"reshape", "broadcast", "permute", "slice", "tuple", "struct", "some"})
_SCALAR_GROUPS = frozenset({"unary", "binary", "compare", "select"})

# Worth keeping: real work for each element.
WORK = frozenset(
    "exp log sqrt rsqrt sin cos tanh erf contract reduce cumsum for while static_for native".split()
)
_LOOPS = frozenset({"while", "for", "static_for", "for_subs"})


def is_trivial(op: Op) -> bool:
    """Whether an operation is as cheap to make again as to keep, when its operands are."""
    if op.regions or len(op.results) != 1:
        return False
    if op.kind in SOURCES or op.kind in VIEWS:
        return True
    if op.kind == "call" and op.attrs.get("prepared"):
        return True
    type_ = op.result.type
    scalar = isinstance(type_, TensorType) and type_.is_scalar
    return scalar and OPS[op.kind].group in _SCALAR_GROUPS


class Traits:
    """Traits of operations that depend on the functions they call."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.effects: dict[str, Effects] = {}
        self._total: dict[str, bool] = {}
        self._work: dict[str, bool] = {}
        for name in callees_first(functions):
            self.learn(functions[name])

    def learn(self, function: Function) -> None:
        """Takes in a function whose callees are known."""
        ops = list(walk(function.body))
        self.effects[function.name] = summary(function, self.effects)
        self._total[function.name] = all(map(self._is_total, ops))
        self._work[function.name] = any(map(self._is_work, ops))

    def pure(self, op: Op) -> bool:
        """No state is read or written, here or in anything called or inside regions."""
        for inner in walk(op):
            if inner.kind in ("state_read", "state_write"):
                return False
            if inner.kind == "call" and not self.effects[inner.attrs["callee"]].pure:
                return False
        return True

    def total(self, op: Op) -> bool:
        """Whether it can be run where the program would not have: no index out of range, no
        division by zero, no largest of no elements, no loop."""
        return all(map(self._is_total, walk(op)))

    def is_total(self, function: str) -> bool:
        return self._total[function]

    def _is_total(self, op: Op) -> bool:
        if op.kind == "call":
            return self._total[op.attrs["callee"]]
        if op.kind == "gather":
            return len(op.operands) == 1
        if op.kind in ("div", "rem"):
            type_ = op.result.type
            return isinstance(type_, TensorType) and type_.dtype.is_float
        if op.kind == "reduce" and op.attrs["op"] in ("min", "max"):
            source = op.operands[0].type
            assert isinstance(source, TensorType)
            return all(is_at_least(source.dims[axis], 1) for axis in op.attrs["axes"])
        return op.kind not in ("while", "for", "native")

    def work(self, op: Op) -> bool:
        """Whether an operation is worth doing once instead of again and again."""
        return any(map(self._is_work, walk(op)))

    def _is_work(self, op: Op) -> bool:
        if op.kind == "call":
            return self._work[op.attrs["callee"]]
        return op.kind in WORK


def is_loop(op: Op) -> bool:
    return op.kind in _LOOPS


def may_be_empty(op: Op) -> bool:
    """Whether a loop's body may never run. Child arrays without elements have no loop left."""
    if op.kind == "for_subs":
        return False
    if op.kind != "static_for":
        return True
    start, stop = op.attrs["start"].constant, op.attrs["stop"].constant
    return start is None or stop is None or start >= stop
