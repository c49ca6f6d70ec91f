"""Host expressions worked out in NumPy, through the oracle's meaning of each operation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from linnet.dims import Dim, DimError, Symbol
from linnet.ir.semantics import NUMPY, SEMANTICS, Call, EvaluationError, Tensor
from linnet.passes.bounding.pages import page_range
from linnet.passes.bounding.values import Guard, Host, Leaf
from linnet.types import DType, Subst, TensorType

# No index of a real program is larger, and a check must cost little beside the call it guards.
MAX_ELEMENTS = 1 << 22


class Unavailable(Exception):
    """An input is not on the host, or the expression is too large to work out before a call."""


class HostRun:
    """Values of leaves and expressions for one set of inputs and sizes, each worked out once."""

    def __init__(
        self, inputs: Mapping[str, Any], sizes: Mapping[Symbol, int], leaves: Mapping[Symbol, Leaf]
    ) -> None:
        self.inputs = inputs
        self.sizes = dict(sizes)
        self.leaves = leaves
        self._values: dict[Host, Any] = {}
        self._numbers = dict(sizes)  # sizes and the leaves so far

    @cached_property
    def subst(self) -> Subst:
        return Subst({symbol: Dim.of(size) for symbol, size in self.sizes.items()})

    def dim(self, dim: Dim) -> int:
        """A bound or an extent as a number."""
        if dim.constant is not None:
            return dim.constant
        for symbol in dim.symbols:
            if symbol in self.leaves and symbol not in self._numbers:
                self._numbers[symbol] = self._leaf(self.leaves[symbol])
        try:
            return dim.evaluate(self._numbers)
        except DimError as error:
            raise Unavailable from error

    def _leaf(self, leaf: Leaf) -> int:
        value = self._input(leaf.name)
        if not isinstance(value, int):
            value = np.asarray(value)
            if value.size == 0:
                raise Unavailable
        return leaf.of(value)

    def _input(self, name: str) -> Any:
        if self.inputs.get(name) is None:
            raise Unavailable
        return self.inputs[name]

    def holds(self, guard: Guard) -> bool:
        return bool(self.value(guard.value)) is guard.expected

    def value(self, host: Host) -> Any:
        """The expression's array."""
        if host not in self._values:
            with np.errstate(all="ignore"):
                try:
                    self._values[host] = self._work_out(host)
                except (EvaluationError, DimError, ValueError, OverflowError) as error:
                    # What the program itself refuses is told when it runs.
                    raise Unavailable from error
        return self._values[host]

    def _work_out(self, host: Host) -> Any:
        if host.kind == "if":
            condition, then, otherwise = host.operands
            return self.value(then if bool(self.value(condition)) else otherwise)
        result = self.subst.type(host.result)
        if not isinstance(result, TensorType) or not isinstance(result.dtype, DType):
            raise Unavailable
        if any(dim.constant is None for dim in result.dims):
            raise Unavailable
        if host.kind == "input":
            return np.asarray(self._input(str(host.attrs["name"])), NUMPY[result.dtype])
        if int(np.prod(Tensor.of(result).shape, dtype=np.float64)) > MAX_ELEMENTS:
            raise Unavailable
        operands = tuple(map(self.value, host.operands))
        if host.kind == "pages":
            table, positions, *rows = operands
            size = host.attrs["size"].evaluate(self.sizes)
            return page_range(table, positions, rows[0] if rows else None, size)
        inputs = tuple(self.subst.type(operand.result) for operand in host.operands)
        attrs = {name: self._bound(value) for name, value in host.attrs.items()}
        return np.asarray(
            SEMANTICS[host.kind](Call(host.kind, operands, attrs, (result,), inputs, None))
        )

    def _bound(self, value: Any) -> Any:
        """An attribute with its dimensions as numbers."""
        if isinstance(value, Dim):
            return Dim.of(value.evaluate(self.sizes))
        if isinstance(value, tuple):
            return tuple(map(self._bound, value))
        return value
