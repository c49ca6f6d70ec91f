"""Calls like an earlier one: inputs of the same kinds and shapes, of which only values are checked.

Between two tokens a step's weights have pushed the interpreter's own data out of the caches, so
every object that a call touches costs a miss: a decoding step of a small model would spend a tenth
of its time on checks. What does not pass here goes the full way, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.backends.inputs import Checked, numpy_dtype
from linnet.backends.signature import Signature
from linnet.passes.bounding.values import Leaf
from linnet.passes.bounds import Requirement
from linnet.passes.ranges import Ranges
from linnet.types import DType, TensorType

Alike = tuple[Any, ...]  # what calls that are alike have in common
Scalar = tuple[int, DType, int, int]  # a parameter, its dtype, least and largest value


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


@dataclass(frozen=True, slots=True)
class Values:
    """What the values of inputs of one key have to be like. It keeps nothing of a call, so that
    one may begin inside another (a signal's handler, a finaliser)."""

    ranges: Ranges
    look: tuple[tuple[int, Leaf], ...]  # which input each of the ranges' leaves is in
    scalars: tuple[Scalar, ...]
    copied: tuple[int, ...]

    @staticmethod
    def of(
        signature: Signature,
        requirements: Sequence[Requirement],
        inputs: Sequence[Any],
        checked: Checked,
    ) -> Values | None:
        """For inputs like these, which passed; None where more has to be looked at."""
        if len(inputs) != len(signature.slots):
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
                    copied.append(at)  # what is looked at is what runs, whatever threads do
            elif slot.bound.shape or not dtype.is_integer:
                return None
            else:
                scalars.append((at, dtype, *dtype.integer_range))
        ranges = Ranges.of(requirements, signature.sizes(checked.generics))
        places = {slot.name: at for at, slot in enumerate(signature.slots)}
        if ranges is None or any(leaf.name not in places for leaf in ranges.leaves):
            return None
        look = tuple((places[leaf.name], leaf) for leaf in ranges.leaves)
        return Values(ranges, look, tuple(scalars), tuple(copied))

    def held(self, inputs: tuple[Any, ...]) -> list[Any] | None:
        """Inputs of the key with integers' arrays copied; None where their values are not what
        they have to be."""
        held = list(inputs)
        for at in self.copied:
            held[at] = inputs[at].copy()
        if not self.ranges.hold([leaf.of(held[at]) for at, leaf in self.look]):
            return None
        for at, _, low, high in self.scalars:
            if not low <= inputs[at] <= high:
                return None
        return held
