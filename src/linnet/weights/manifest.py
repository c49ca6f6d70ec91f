"""What a program bound to numbers needs: its parameters, states and array lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from linnet.weights.dtypes import NUMPY


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """One parameter or buffer of a bound program.

    `optional` marks a `param ... = none`. `within` is the path of the innermost optional `sub` that
    holds it (empty: none): such a sub is there when the checkpoint has any of its tensors, and
    then has to be complete. `trained` is False for a `buffer`.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    optional: bool = False
    within: str = ""
    trained: bool = True

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * NUMPY[self.dtype].itemsize


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One `state` of a bound program; it starts at zero and needs no weights."""

    path: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * NUMPY[self.dtype].itemsize


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a bound root block asks for.

    `arrays` holds the length of each sub array by its path (`layers`, `groups.0.linear`), also
    of empty ones: bindings of elements past it are left out without a word.
    """

    params: tuple[ParamSpec, ...]
    states: tuple[StateSpec, ...] = ()
    arrays: Mapping[str, int] = field(default_factory=dict)
