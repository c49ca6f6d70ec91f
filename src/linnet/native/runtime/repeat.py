"""Calls like an earlier one: inputs of the same kinds and shapes, of which only values are checked.

Between two tokens a step's weights have pushed the interpreter's own data out of the caches, so
every object that a call touches costs a miss: a decoding step of a small model would spend a tenth
of its time on checks. What does not pass here goes the full way, which says what is wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.backends.inputs import Checked, numpy_dtype
from linnet.backends.signature import Signature
from linnet.dims import Dim, Symbol
from linnet.native.runtime.code import Entry
from linnet.passes.bounding.ranges import Ranges
from linnet.passes.bounds import Requirement
from linnet.types import DType, TensorType


def key_of(inputs: Any) -> tuple[Any, ...] | None:
    """What calls that are alike have in common; None for inputs that go the full way."""
    if type(inputs) is not list and type(inputs) is not tuple:
        return None
    found: list[Any] = []
    for value in inputs:
        if type(value) is np.ndarray:
            found.append((value.dtype, value.shape))
        elif type(value) is int:
            found.append(int)
        else:
            return None
    return tuple(found)


class Repeat:
    """An entry for inputs of one key."""

    def __init__(
        self, entry: Entry, ranges: Ranges, look: Sequence[tuple[int, str]], sizes: Sequence[int],
        scalars: Sequence[tuple[int, Any, int, int]], result: tuple[tuple[int, ...], Any],
    ) -> None:  # fmt: skip
        self.entry, self._ranges, self._look = entry, ranges, look
        self._scalars = scalars  # parameter, its memory, least and largest value
        self._shape, self._dtype = result
        count = len(entry.generated.function.params)
        self._inputs = (ctypes.c_void_p * max(count, 1))()
        self._outputs = (ctypes.c_void_p * 1)()
        self._sizes = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
        for at, memory, _, _ in scalars:
            self._inputs[at] = memory.ctypes.data

    @staticmethod
    def of(
        entry: Entry,
        signature: Signature,
        requirements: Sequence[Requirement],
        inputs: Sequence[Any],
        checked: Checked,
    ) -> Repeat | None:
        """For calls like the one that passed with these inputs, None where they need more."""
        function = entry.generated.function
        kinds = function.result_types
        if len(inputs) != len(signature.slots) or len(kinds) != 1:
            return None
        if not isinstance(kinds[0], TensorType) or not isinstance(kinds[0].dtype, DType):
            return None
        by_name = {g.name: checked.generics[g.var] for g in signature.generics}
        known = {n: v.constant for n, v in by_name.items() if isinstance(v, Dim)}
        named = {n: v for n, v in known.items() if v is not None}
        sizes = {g.var: named[g.name] for g in function.generics if isinstance(g.var, Symbol)}
        scalars = []
        for at, (slot, value) in enumerate(zip(signature.slots, inputs, strict=True)):
            if not isinstance(slot.bound, TensorType):
                return None
            dtype = slot.bound.dtype
            if not isinstance(dtype, DType):
                return None
            if type(value) is not int:
                if value.dtype != numpy_dtype(dtype) or not value.dtype.isnative:
                    return None
            elif slot.bound.shape or not dtype.is_integer:
                return None
            else:
                scalars.append((at, np.zeros((), numpy_dtype(dtype)), *dtype.integer_range))
        ranges = Ranges.of(requirements, named)
        if ranges is None:
            return None
        places = {slot.name: at for at, slot in enumerate(signature.slots)}
        if any(leaf.name not in places for leaf in ranges.leaves):
            return None
        look = [(places[leaf.name], leaf.how) for leaf in ranges.leaves]
        shape = tuple(dim.evaluate(sizes) for dim in kinds[0].dims)
        return Repeat(
            entry, ranges, look, list(sizes.values()), scalars,
            (shape, numpy_dtype(kinds[0].dtype)),
        )  # fmt: skip

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Takes the inputs up, where their values are all that they have to be."""
        for at, memory, low, high in self._scalars:
            value = inputs[at]
            if not low <= value <= high:
                return False
            memory[()] = value
        values = []
        for at, how in self._look:
            value = inputs[at]
            if type(value) is not int:
                if value.size == 1:
                    value = value.item()
                elif value.size == 0:
                    return False
                else:
                    value = int(value.min() if how == "min" else value.max())
            values.append(value)
        if not self._ranges.hold(values):
            return False
        for at, value in enumerate(inputs):
            if type(value) is not int:
                flags = value.flags
                if not (flags.c_contiguous and flags.aligned):
                    return False
                self._inputs[at] = value.__array_interface__["data"][0]
        return True

    def run(self) -> Any:
        """The call on the inputs taken up last. Raises `RunError` as `Entry.run` does."""
        made = np.empty(self._shape, self._dtype)
        self._outputs[0] = made.__array_interface__["data"][0]
        self.entry.call(self._inputs, self._sizes, self._outputs)
        return made
