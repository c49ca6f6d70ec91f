"""Weights that are in memory already: a mapping from name to NumPy array or torch tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from linnet.weights.dtypes import NAMES
from linnet.weights.errors import fail_all, problem, quoted
from linnet.weights.source import TensorInfo, WeightSource, torch_as_numpy


class MappingSource(WeightSource):
    """Arrays by name. Reads copy, so that a loaded model never shares memory with the caller."""

    label = "the weights mapping"

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = {str(name): value for name, value in arrays.items()}
        self._infos: dict[str, TensorInfo] = {}
        problems = []
        for name, value in self._arrays.items():
            info = _info(value)
            if info is None:
                what = f"the value of {quoted(str(name))} ({_kind(value)}) is no array of numbers"
                problems.append(problem("E5013", what, help="give NumPy arrays or torch tensors"))
            else:
                self._infos[name] = info
        fail_all(problems)

    def names(self) -> list[str]:
        return list(self._infos)

    def info(self, name: str) -> TensorInfo:
        return self._infos[name]

    def __contains__(self, name: object) -> bool:
        return name in self._infos

    def pieces(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        value = self._arrays[name]
        array = torch_as_numpy(value.detach().cpu()) if _is_torch(value) else np.asarray(value)
        yield np.ascontiguousarray(array).reshape(-1)

    def close(self) -> None:
        self._arrays = {}


def _is_torch(value: object) -> bool:
    return any(t.__module__ == "torch" and t.__name__ == "Tensor" for t in type(value).__mro__)


def _kind(value: Any) -> str:
    """What a value is, in a word: its type, or why a torch tensor can't be read as it is."""
    if not _is_torch(value):
        return type(value).__name__
    return "a tensor without data" if value.is_meta else f"a tensor of layout {value.layout}"


def _info(value: Any) -> TensorInfo | None:
    shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or kind is None:
        return None
    if _is_torch(value) and (value.is_meta or str(value.layout) != "torch.strided"):
        return None
    if _is_torch(value):
        stored = str(kind).removeprefix("torch.")
        dtype = _TORCH_NAMES.get(stored)
    else:
        stored = str(kind)
        dtype = NAMES.get(np.dtype(kind))
    count = int(np.prod([int(n) for n in shape], dtype=object)) if len(shape) else 1
    nbytes = count * int(getattr(value, "itemsize", 0) or kind.itemsize)
    known = dtype is not None
    return TensorInfo(tuple(map(int, shape)), dtype or stored, nbytes, stored, readable=known)


_TORCH_NAMES = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
}
