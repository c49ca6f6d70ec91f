"""A model's weights: as arrays for code that reads them, laid out once for the kernels.

Each parameter is kept in the form that was asked for. A quantised GGUF tensor stays as its blocks
until one is; a weight packed without loss is given back as an array from its packed form.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
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
_FOUR_BITS = ("int4", "int4_group64")
_AROUND = "int8_group"
# GGUF block formats that the library takes as they are, and the format they come nearest to.
BLOCKS: dict[str, tuple[int, tuple[str, ...]]] = {
    "Q8_0": (3, ("int8", "int8_group")), "Q4_0": (4, ("int4",)), "Q4_1": (5, ("int4",)),
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
        self._scratch = np.empty(0, np.float32)
        pointer, whole, small = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
        self.c.linnet_k_pack.restype = pointer
        self.c.linnet_k_pack.argtypes = [small, small, pointer, whole, whole, whole, whole]
        self.c.linnet_k_pack_blocks.restype = pointer
        self.c.linnet_k_pack_blocks.argtypes = [small, pointer, whole, whole]
        self.c.linnet_k_unpack.restype = None
        self.c.linnet_k_unpack.argtypes = [pointer, whole, whole, pointer]
        self.c.linnet_k_convert.restype = None
        self.c.linnet_k_convert.argtypes = [small, pointer, whole, pointer]
        self.c.linnet_k_free.restype = None
        self.c.linnet_k_free.argtypes = [pointer]
        self.c.linnet_k_rounded.restype = None
        self.c.linnet_k_rounded.argtypes = [pointer, small]
        self.c.linnet_k_error.restype = ctypes.c_char_p
        self.c.linnet_k_set_threads.argtypes = [small]

    @classmethod
    def get(cls) -> Library:
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def forget(self) -> None:
        """Gives back the memory that unpacking goes through."""
        self._scratch = np.empty(0, np.float32)

    def set_threads(self, count: int) -> None:
        self.c.linnet_k_set_threads(count)

    def checked(self, made: int | None, path: str) -> int:
        if not made:
            said = (self.c.linnet_k_error() or b"").decode("utf-8", "replace")
            raise NativeError(f"cannot pack the weight `{path}`: {said or 'not enough memory'}")
        return int(made)

    def unpacked(self, handle: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """A packed matrix as an array of f32 or bf16."""
        count = shape[0] * shape[1]
        if dtype == np.float32:
            wide = np.empty(shape, np.float32)
        else:
            if self._scratch.size < count:
                self._scratch = np.empty(count, np.float32)
            wide = self._scratch[:count]
        self.c.linnet_k_unpack(handle, 0, shape[0], _address(wide))
        if dtype == np.float32:
            return wide
        narrow = np.empty(shape, dtype)
        self.c.linnet_k_convert(1, _address(wide), wide.size, _address(narrow))
        return narrow


@dataclass(slots=True)
class Weight:
    """One tensor, whatever parameters it serves: an array, a GGUF's blocks, packed forms."""

    shape: tuple[int, ...]
    dtype: Any
    array: Array | None = None
    blocks: Array | None = None
    stored: str = ""

    @property
    def own_format(self) -> str:
        return "f32" if self.dtype == np.float32 else "bf16"


class Weights:
    """The parameters of a model by path; absent ones are not there."""

    def __init__(
        self, items: Mapping[str, Weight], wanted: WeightsFormat = None, numerics: str = "fast"
    ) -> None:
        self.items, self.wanted, self.numerics = dict(items), wanted, numerics
        self._made: dict[tuple[int, str], int] = {}

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self.items)

    def array(self, path: str) -> Array | None:
        """The parameter as an array."""
        item = self.items.get(path)
        if item is None:
            return None
        if item.array is None:
            item.array = self._restored(path, item)
        return item.array

    def packed(self, path: str) -> int | None:
        """The packed form of a parameter; None where it is absent or no matrix of floats."""
        item = self.items.get(path)
        if item is None or len(item.shape) != 2:
            return None
        name = self._format_of(path, item)
        key = (id(item), name)
        if key not in self._made:
            self._made[key] = self._pack(path, item, name)
        return self._made[key]

    def _format_of(self, path: str, item: Weight) -> str:
        """The format asked for the path; without one the parameter's own."""
        if self.wanted is None or isinstance(self.wanted, str):
            if self.wanted in _FOUR_BITS and not any(step.isdigit() for step in path.split(".")):
                return _AROUND  # a head or another weight that there is once
            return self.wanted or item.own_format
        for pattern, name in self.wanted.items():
            if fnmatchcase(path, pattern):
                return name
        return item.own_format

    def _pack(self, path: str, item: Weight, name: str) -> int:
        library = Library.get()
        if item.blocks is not None and name in BLOCKS[item.stored][1]:
            made = self._from_blocks(path, item)
        else:
            array = item.array if item.array is not None else self._restored(path, item)
            kind, group = FORMATS[name]
            half = int(item.dtype != np.float32)
            rows, cols = item.shape
            made = library.checked(
                library.c.linnet_k_pack(kind, half, _address(array), rows, cols, group, 0), path
            )
        library.c.linnet_k_rounded(made, int(self.numerics == "fast"))
        return made

    def _from_blocks(self, path: str, item: Weight) -> int:
        library = Library.get()
        assert item.blocks is not None
        kind = BLOCKS[item.stored][0]
        rows, cols = item.shape
        return library.checked(
            library.c.linnet_k_pack_blocks(kind, _address(item.blocks), rows, cols), path
        )

    def _restored(self, path: str, item: Weight) -> Array:
        """The array of a tensor that is held in another form."""
        library = Library.get()
        if item.blocks is not None:
            made = self._from_blocks(path, item)
            try:
                return library.unpacked(made, item.shape, item.dtype)
            finally:
                library.c.linnet_k_free(made)
        handle = self._made[(id(item), item.own_format)]
        return library.unpacked(handle, item.shape, item.dtype)

    def release(self) -> None:
        """Lets go of what packed forms hold without loss, and of arrays that blocks gave."""
        for item in self.items.values():
            if len(item.shape) != 2:
                continue
            if (id(item), item.own_format) in self._made:
                item.array = item.blocks = None
            elif item.blocks is not None:
                item.array = None
        if self._made:
            Library.get().forget()

    def __del__(self) -> None:
        made, self._made = getattr(self, "_made", {}), {}
        for handle in made.values():
            Library.get().c.linnet_k_free(handle)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
