"""Calls like an earlier one, to compiled code."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.backends.inputs import Checked, numpy_dtype
from linnet.backends.repeat import Values
from linnet.backends.signature import Signature
from linnet.native.runtime.code import Entry
from linnet.passes.bounds import Requirement
from linnet.types import DType, TensorType

Array = np.ndarray[Any, Any]


class Repeat:
    """An entry for inputs of one key (`linnet.backends.repeat`)."""

    def __init__(
        self,
        entry: Entry,
        values: Values,
        sizes: Sequence[int],
        result: tuple[tuple[int, ...], Any],
    ) -> None:
        self.entry, self._values = entry, values
        self._scalars = [(at, _INTEGERS[dtype]) for at, dtype, *_ in values.scalars]
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
        if len(kinds) != 1:
            return None
        if not isinstance(kinds[0], TensorType) or not isinstance(kinds[0].dtype, DType):
            return None
        values = Values.of(signature, requirements, inputs, checked)
        if values is None:
            return None
        sizes = entry.sizes(signature.sizes(checked.generics))
        shape = tuple(dim.evaluate(sizes) for dim in kinds[0].dims)
        result = shape, numpy_dtype(kinds[0].dtype)
        return Repeat(entry, values, list(sizes.values()), result)

    def take(self, inputs: tuple[Any, ...]) -> Call | None:
        """The call on inputs of the key, None where their values are not what they have to be."""
        held = self._values.held(inputs)
        if held is None:
            return None
        for at, kind in self._scalars:
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
