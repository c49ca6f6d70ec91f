"""Calls like an earlier one: inputs of the same kinds and shapes, of which only values are checked.

Between two tokens a step's weights have pushed the interpreter's own data out of the caches, so
every object that a call touches costs a miss: a decoding step of a small model would spend a tenth
of its time on checks. What does not pass here goes the full way, which says what is wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.backends.inputs import Checked, numpy_dtype
from linnet.backends.signature import Signature
from linnet.native.runtime.code import Entry
from linnet.passes.bounding.values import Leaf
from linnet.passes.bounds import Requirement
from linnet.passes.ranges import Ranges
from linnet.types import DType, TensorType

Array = np.ndarray[Any, Any]
Alike = tuple[Any, ...]  # what calls that are alike have in common
Scalar = tuple[int, Any, int, int]  # a parameter, what holds its value, least and largest value


def key_of(name: object, inputs: object) -> Alike | None:
    """What a call has in common with those like it; None for one that goes the full way."""
    if type(name) is not str or type(inputs) is not tuple:
        return None
    found: list[Any] = [name]
    for value in inputs:
        if type(value) is np.ndarray:
            found.append((value.dtype, value.shape))
        elif type(value) is int:
            found.append(int)
        else:
            return None
    return tuple(found)


class Repeat:
    """An entry for inputs of one key. It keeps nothing of a call, so that one may begin inside
    another (a signal's handler, a finaliser)."""

    def __init__(
        self,
        entry: Entry,
        ranges: Ranges,
        look: Sequence[tuple[int, Leaf]],
        sizes: Sequence[int],
        scalars: Sequence[Scalar],
        copied: Sequence[int],
        result: tuple[tuple[int, ...], Any],
    ) -> None:
        self.entry, self._ranges, self._look = entry, ranges, look
        self._scalars, self._copied = scalars, copied
        self._shape, self._dtype = result
        self._sizes = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)

    @staticmethod
    def of(
        entry: Entry,
        signature: Signature,
        requirements: Sequence[Requirement],
        inputs: Sequence[Any],
        checked: Checked,
    ) -> Repeat | None:
        """For calls like the one that passed with these inputs, None where they need more."""
        kinds = entry.generated.function.result_types
        if len(inputs) != len(signature.slots) or len(kinds) != 1:
            return None
        if not isinstance(kinds[0], TensorType) or not isinstance(kinds[0].dtype, DType):
            return None
        if any(type(value) is not int and value.size == 0 for value in inputs):
            return None
        scalars: list[Scalar] = []
        copied: list[int] = []
        for at, (slot, value) in enumerate(zip(signature.slots, inputs, strict=True)):
            if not isinstance(slot.bound, TensorType) or not isinstance(slot.bound.dtype, DType):
                return None
            dtype = slot.bound.dtype
            if type(value) is not int:
                if value.dtype != numpy_dtype(dtype) or not value.dtype.isnative:
                    return None
                if not dtype.is_float:
                    copied.append(at)  # as `NumPyArrays` does, and for its reason
            elif slot.bound.shape or dtype not in _INTEGERS:
                return None
            else:
                scalars.append((at, _INTEGERS[dtype], *dtype.integer_range))
        named = signature.sizes(checked.generics)
        ranges = Ranges.of(requirements, named)
        places = {slot.name: at for at, slot in enumerate(signature.slots)}
        if ranges is None or any(leaf.name not in places for leaf in ranges.leaves):
            return None
        look = [(places[leaf.name], leaf) for leaf in ranges.leaves]
        sizes = entry.sizes(named)
        shape = tuple(dim.evaluate(sizes) for dim in kinds[0].dims)
        result = shape, numpy_dtype(kinds[0].dtype)
        return Repeat(entry, ranges, look, list(sizes.values()), scalars, copied, result)

    def take(self, inputs: tuple[Any, ...]) -> Call | None:
        """The call on inputs of the key, None where their values are not what they have to be."""
        held = list(inputs)
        for at in self._copied:
            held[at] = inputs[at].copy()
        if not self._ranges.hold([leaf.of(held[at]) for at, leaf in self._look]):
            return None
        for at, kind, low, high in self._scalars:
            if not low <= inputs[at] <= high:
                return None
            held[at] = kind(inputs[at])
        pointers = (ctypes.c_void_p * max(len(held), 1))()
        for at, value in enumerate(held):
            if type(value) is not np.ndarray:
                pointers[at] = ctypes.addressof(value)
                continue
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
            pointers[at] = value.__array_interface__["data"][0]
        result = np.empty(self._shape, self._dtype)
        return Call(self.entry, held, pointers, self._sizes, result)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, ready to run; `held` keeps alive what `pointers` point at."""

    entry: Entry
    held: list[Any]
    pointers: Any
    sizes: Any
    result: Array

    def run(self) -> Array:
        """Raises `RunError` as `Entry.run` does."""
        out = (ctypes.c_void_p * 1)(self.result.__array_interface__["data"][0])
        self.entry.call(self.pointers, self.sizes, out)
        return self.result


_INTEGERS = {
    DType.I8: ctypes.c_int8, DType.I16: ctypes.c_int16, DType.I32: ctypes.c_int32,
    DType.I64: ctypes.c_int64, DType.U8: ctypes.c_uint8, DType.U16: ctypes.c_uint16,
    DType.U32: ctypes.c_uint32, DType.U64: ctypes.c_uint64,
}  # fmt: skip
