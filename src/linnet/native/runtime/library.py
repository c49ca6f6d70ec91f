"""The kernel library as Python calls it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from linnet.native.errors import NativeError
from linnet.native.toolchain.kernels import kernels_object
from linnet.native.toolchain.loading import open_object, symbol

Array = np.ndarray[Any, Any]


class Library:
    """The kernel library's functions that lay weights out."""

    _one: Library | None = None

    def __init__(self) -> None:
        self.path = kernels_object()
        self.c = open_object(self.path)
        self._spare: list[Array] = []  # f32 that unpacking went through, for the next time
        self._declare()

    def _declare(self) -> None:
        pointer, whole, small = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
        for name, result, arguments in (
            ("pack", pointer, [small, small, pointer, whole, whole, whole, whole]),
            ("pack_blocks", pointer, [small, pointer, whole, whole]),
            ("pack_joined", pointer, [small, *[pointer] * 4, whole, whole, whole]),
            ("pack_experts", pointer, [small, small, small, pointer, *[whole] * 4]),
            ("part", pointer, [pointer, whole, whole]),
            ("unpack", None, [pointer, whole, whole, pointer]),
            ("unpack_experts", None, [pointer, whole, whole, pointer]),
            ("convert", None, [small, pointer, whole, pointer]),
            ("free", None, [pointer]),
            ("bytes", whole, [pointer]),
            ("rounded", None, [pointer, small]),
            ("error", ctypes.c_char_p, []),
            ("set_threads", None, [small]),
        ):
            function = symbol(self.c, f"linnet_k_{name}", self.path)
            function.restype, function.argtypes = result, arguments

    @classmethod
    def get(cls) -> Library:
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def forget(self) -> None:
        """Gives back the memory that unpacking goes through."""
        self._spare.clear()

    def set_threads(self, count: int) -> None:
        self.c.linnet_k_set_threads(count)

    def checked(self, made: int | None, path: str) -> int:
        if not made:
            said = (self.c.linnet_k_error() or b"").decode("utf-8", "replace")
            raise NativeError(f"cannot pack the weight `{path}`: {said or 'not enough memory'}")
        return int(made)

    def unpacked(
        self, handle: int, shape: tuple[int, ...], dtype: Any, first_row: int = 0
    ) -> Array:
        """Rows of a packed matrix, or all of packed experts, as an array of f32 or bf16."""
        narrow = dtype != np.float32
        wide = self._scratch(int(np.prod(shape))) if narrow else np.empty(shape, np.float32)
        if len(shape) == 3:
            self.c.linnet_k_unpack_experts(handle, shape[0], shape[1], address(wide))
        else:
            self.c.linnet_k_unpack(handle, first_row, first_row + shape[0], address(wide))
        if not narrow:
            return wide
        made = np.empty(shape, dtype)
        self.c.linnet_k_convert(1, address(wide), made.size, address(made))
        self._spare[:] = [wide]
        return made

    def _scratch(self, count: int) -> Array:
        """Memory for `count` f32 or more that is the caller's alone until it is spare again: models
        unpack in several threads at once."""
        try:
            spare = self._spare.pop()
        except IndexError:  # another has it
            spare = np.empty(0, np.float32)
        return spare if spare.size >= count else np.empty(count, np.float32)


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
