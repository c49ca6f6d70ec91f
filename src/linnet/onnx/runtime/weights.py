"""The weights of a model: one copy, as ONNX Runtime sees them, some of them side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime as ort

from linnet.onnx.runtime.values import Array, to_ort
from linnet.types import DType


class Weights:
    """Arrays by path, shared by all sessions.

    Matrices that are multiplied with one input may be asked for side by side (`join`): they then
    lie in one array of which each is a view. That moves them, so a session that holds values of an
    earlier `version` has to bind its weights again.
    """

    def __init__(self, arrays: Mapping[str, Array], dtypes: Mapping[str, DType]) -> None:
        self.arrays = dict(arrays)
        self.dtypes = {path: dtypes[path] for path in arrays}
        self.values = {path: to_ort(array, dtypes[path]) for path, array in arrays.items()}
        self.joined: dict[tuple[str, ...], tuple[Array, ort.OrtValue]] = {}
        self.member: dict[str, tuple[str, ...]] = {}
        self.version = 0

    def join(self, paths: Sequence[str]) -> bool:
        """Lays matrices `[rows, columns]` below one another; False where one of them lies beside
        others already."""
        group = tuple(paths)
        if group in self.joined:
            return True
        if any(path in self.member for path in group) or len(set(group)) < len(group):
            return False
        dtype = self.dtypes[group[0]]
        both = np.concatenate([self.arrays[path] for path in group])
        self.joined[group] = both, to_ort(both, dtype)
        start = 0
        for path in group:
            stop = start + len(self.arrays[path])
            self.arrays[path] = both[start:stop]
            self.values[path] = to_ort(self.arrays[path], dtype)
            self.member[path] = group
            start = stop
        self.version += 1
        return True

    def value(self, paths: Sequence[str]) -> ort.OrtValue:
        """One parameter, or several that were joined."""
        return self.values[paths[0]] if len(paths) == 1 else self.joined[tuple(paths)][1]
