"""A model's states: arrays that outlive calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort

from linnet.ir.semantics import NUMPY
from linnet.onnx.runtime.memory import Memory
from linnet.onnx.runtime.values import Array, to_ort
from linnet.types import DType

SPARE = 1 << 20


@dataclass(slots=True)
class Buffer:
    """A state: its array, the runtime's view of it, and a spare for calls that can't write in
    place."""

    array: Array
    value: ort.OrtValue
    dtype: DType
    spare: tuple[Array, ort.OrtValue] | None = None

    @staticmethod
    def zeros(shape: tuple[int, ...], dtype: DType, memory: Memory) -> Buffer:
        array = memory.zeros(shape, NUMPY[dtype])
        return Buffer(array, to_ort(array, dtype), dtype)

    def other(self) -> ort.OrtValue:
        """Memory of the same size to write the next value to."""
        if self.spare is None:
            array = np.empty_like(self.array)
            self.spare = array, to_ort(array, self.dtype)
        return self.spare[1]

    def swap(self) -> None:
        assert self.spare is not None
        before = self.array, self.value
        self.array, self.value = self.spare
        # A large one costs more to hold than to take anew.
        self.spare = before if self.array.nbytes <= SPARE else None


class States:
    """States by path. `version` tells sessions when one has changed its place."""

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self.buffers = dict(buffers)
        self.version = 0

    def swap(self, written: Sequence[Buffer]) -> None:
        """Makes the spares of these the states."""
        for buffer in written:
            buffer.swap()
            self.version += 1
