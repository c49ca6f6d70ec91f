"""Weights laid out once for the kernels, shared by all entries of a model."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from linnet.native.errors import NativeError
from linnet.native.toolchain.kernels import kernels_object

Array = np.ndarray[Any, Any]
WeightsFormat = str | Mapping[str, str] | None

# The kernel library's number of each format, and the inputs that share a scale (0: all of a row).
FORMATS: dict[str, tuple[int, int]] = {
    "f32": (0, 0), "bf16": (1, 0), "int8": (2, 0), "int8_group": (3, 32), "int4": (4, 32),
    "int4_group64": (4, 64),
}  # fmt: skip


def check_format(wanted: WeightsFormat) -> None:
    """Raises `ValueError` for a format that there is not."""
    named = [wanted] if isinstance(wanted, str) else list((wanted or {}).values())
    for name in named:
        if name not in FORMATS:
            raise ValueError(f"weights_format is one of {', '.join(FORMATS)}, not {name!r}")


class Library:
    """The kernel library's functions that Python calls."""

    _one: Library | None = None

    def __init__(self) -> None:
        self.path = kernels_object()
        self.c = ctypes.CDLL(str(self.path))
        pointer, whole = ctypes.c_void_p, ctypes.c_int64
        self.c.linnet_k_pack.restype = pointer
        self.c.linnet_k_pack.argtypes = [
            ctypes.c_int, ctypes.c_int, pointer, whole, whole, whole, whole,
        ]  # fmt: skip
        self.c.linnet_k_free.argtypes = [pointer]
        self.c.linnet_k_free.restype = None
        self.c.linnet_k_rounded.argtypes = [pointer, ctypes.c_int]
        self.c.linnet_k_rounded.restype = None
        self.c.linnet_k_error.restype = ctypes.c_char_p
        self.c.linnet_k_set_threads.argtypes = [ctypes.c_int]

    @classmethod
    def get(cls) -> Library:
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def set_threads(self, count: int) -> None:
        self.c.linnet_k_set_threads(count)


class Packed:
    """The packed forms of a model's parameters, each array once."""

    def __init__(self, params: Mapping[str, Array], wanted: WeightsFormat, numerics: str) -> None:
        self.params, self.wanted, self.numerics = params, wanted, numerics
        self._made: dict[tuple[int, str], int] = {}

    def handle(self, path: str) -> int | None:
        """The packed form of the parameter at `path`; None where it is absent or no matrix."""
        array = self.params.get(path)
        if array is None or array.ndim != 2:
            return None
        name = self.format_of(path, array)
        key = (id(array), name)
        if key not in self._made:
            self._made[key] = self._pack(path, array, name)
        return self._made[key]

    def format_of(self, path: str, array: Array) -> str:
        """The format asked for the path; without one the array's own."""
        own = "f32" if array.dtype == np.float32 else "bf16"
        if self.wanted is None or isinstance(self.wanted, str):
            return self.wanted or own
        for pattern, name in self.wanted.items():
            if fnmatchcase(path, pattern):
                return name
        return own

    def _pack(self, path: str, array: Array, name: str) -> int:
        c = Library.get().c
        kind, group = FORMATS[name]
        half = int(array.dtype != np.float32)
        rows, cols = array.shape
        data = array.__array_interface__["data"][0]
        made = c.linnet_k_pack(kind, half, data, rows, cols, group, 0)
        if not made:
            said = (c.linnet_k_error() or b"").decode("utf-8", "replace")
            raise NativeError(f"cannot pack the weight `{path}`: {said or 'not enough memory'}")
        c.linnet_k_rounded(made, int(self.numerics == "fast"))
        return int(made)

    def __del__(self) -> None:
        made, self._made = getattr(self, "_made", {}), {}
        for handle in made.values():
            Library.get().c.linnet_k_free(handle)
