"""Generating, compiling and calling an entry's machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linnet.native.emit.blocks import paths
from linnet.native.emit.module import Generated, ModuleWriter, Options
from linnet.native.errors import RunError
from linnet.native.natives.table import KERNELS, selector
from linnet.native.runtime.packing import Weights
from linnet.passes import Binding, lower
from linnet.types import GenericArg

_MESSAGE = 512


def generate(
    binding: Binding,
    entry: str,
    numerics: str,
    present: frozenset[str] | None,
    sizes: Mapping[str, GenericArg] | None = None,
    title: str = "",
) -> Generated:
    """The source of one entry."""
    lowered = lower(binding, [entry], present=present, select=selector(numerics), sizes=sizes)
    writer = ModuleWriter(
        lowered.functions, lowered.entries[entry], lowered.origins, binding.root, KERNELS,
        Options(numerics, title),
    )  # fmt: skip
    return writer.generate()


@dataclass(frozen=True, slots=True)
class Symbols:
    """The functions of a compiled entry."""

    open: Any
    close: Any
    bind: Any
    run: Any


def load_symbols(path: Path, library: Any = None) -> Symbols:
    """The functions of a compiled object."""
    library = ctypes.CDLL(str(path)) if library is None else library
    pointer = ctypes.c_void_p
    library.linnet_open.argtypes, library.linnet_open.restype = [], pointer
    library.linnet_close.argtypes, library.linnet_close.restype = [pointer], None
    library.linnet_bind.argtypes, library.linnet_bind.restype = [pointer] * 4, None
    library.linnet_run.argtypes = [*[pointer] * 5, ctypes.c_int64]
    library.linnet_run.restype = ctypes.c_int32
    return Symbols(library.linnet_open, library.linnet_close, library.linnet_bind,
                   library.linnet_run)  # fmt: skip


class Entry:
    """A compiled entry with the model's parameters and states bound to it."""

    def __init__(self, generated: Generated, symbols: Symbols) -> None:
        self.generated, self.symbols = generated, symbols
        self._handle: int | None = symbols.open()
        if not self._handle:
            raise MemoryError("there is not enough memory")
        self._message = ctypes.create_string_buffer(_MESSAGE)

    def bind(self, binding: Binding, params: Weights, states: Mapping[str, Any]) -> None:
        """Tells the code where parameters, states and packed weights lie; null for absent ones."""
        if binding.root is None:
            return
        raw = self.generated.raw
        self._kept = [
            params.array(path) if path in raw else None
            for path in paths(binding.root, states=False)
        ]
        packed = [params.packed(path) for path in self.generated.packed]
        given = _pointers(self._kept)
        kept = _pointers([states[path] for path in paths(binding.root, states=True)])
        weights = (ctypes.c_void_p * max(len(packed), 1))(*packed)
        self.symbols.bind(self._handle, given, kept, weights)

    def run(self, inputs: Sequence[Any], sizes: Sequence[int], outputs: Sequence[Any]) -> None:
        """One call. Raises `RunError` where it has no meaning on these inputs."""
        numbers = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
        code = self.symbols.run(
            self._handle, _pointers(inputs), numbers, _pointers(outputs), self._message, _MESSAGE
        )
        if code == 0:
            return
        said = self._message.value.decode("utf-8", "replace")
        raise MemoryError(said) if code == 2 else RunError(said)

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            self.symbols.close(handle)


def _pointers(arrays: Sequence[Any]) -> Any:
    made = (ctypes.c_void_p * max(len(arrays), 1))()
    for k, array in enumerate(arrays):
        made[k] = None if array is None else _address(array)
    return made


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])
