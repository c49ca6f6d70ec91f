"""Generating, compiling and calling an entry's machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from linnet.backends.owner import Owner
from linnet.dims import Symbol
from linnet.native.emit.blocks import Wanted
from linnet.native.emit.module import Generated, ModuleWriter, Options
from linnet.native.errors import RunError
from linnet.native.natives.table import KERNELS, selector
from linnet.native.runtime.front import Facts
from linnet.native.runtime.packing import Weights
from linnet.native.runtime.profile import Node, Part, tree
from linnet.native.toolchain.loading import open_object, symbol
from linnet.passes import Binding, Storage, lower
from linnet.passes.join import unread
from linnet.types import GenericArg

_MESSAGE = 512


def generate(
    binding: Binding,
    entry: str,
    numerics: str,
    present: frozenset[str] | None,
    sizes: Mapping[str, GenericArg] | None = None,
    title: str = "",
    profile: bool = False,
    storage: Storage | None = None,
) -> Generated:
    """The source of one entry."""
    lowered = lower(
        binding, [entry], present=present, select=selector(numerics), sizes=sizes, storage=storage
    )
    writer = ModuleWriter(
        lowered.functions, lowered.entries[entry], lowered.origins, binding.root, KERNELS,
        Options(numerics, title, profile),
    )  # fmt: skip
    roots = [*lowered.entries.values()]
    idle = unread(lowered.functions, roots, binding.root)
    return replace(writer.generate(), joined=lowered.joined, unread=idle)


@dataclass(frozen=True, slots=True)
class Symbols:
    """The functions of a compiled entry."""

    open: Any
    close: Any
    bind: Any
    run: Any
    profile: Any = None


def load_symbols(path: Path, library: Any = None) -> Symbols:
    """The functions of a compiled object. Raises `NativeError`."""
    library = open_object(path) if library is None else library
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    found: dict[str, Any] = {}
    for name, result, arguments in (
        ("open", pointer, []),
        ("close", None, [pointer]),
        ("bind", None, [pointer] * 4),
        ("run", ctypes.c_int32, [*[pointer] * 5, whole]),
    ):
        function = symbol(library, f"linnet_{name}", path)
        function.restype, function.argtypes = result, arguments
        found[name] = function
    profile = getattr(library, "linnet_profile", None)
    if profile is not None:
        profile.argtypes, profile.restype = [pointer, pointer, whole], whole
    return Symbols(**found, profile=profile)


class Entry(Owner):
    """A compiled entry with the model's parameters and states bound to it."""

    def __init__(self, generated: Generated, symbols: Symbols) -> None:
        self.generated, self.symbols = generated, symbols
        self._handle: int | None = symbols.open()
        if not self._handle:
            raise MemoryError("there is not enough memory")
        self._message = ctypes.create_string_buffer(_MESSAGE)

    def bind(self, facts: Facts, params: Weights, states: Mapping[str, Any]) -> None:
        """Tells the code where parameters, states and packed weights lie; null for absent ones."""
        if not facts.has_root:
            return
        packed = [self._weight(params, each) for each in self.generated.wanted]
        # Only now is it known which of the others have a packed form.
        either = {path: params.held(path) for path in self.generated.either}
        packed = [
            either.get(each.paths[0], weight) if len(each.paths) == 1 else weight
            for each, weight in zip(self.generated.wanted, packed, strict=True)
        ]
        raw = (self.generated.raw - self.generated.unread) | {
            path for path, weight in either.items() if weight is None
        }
        raws = [params.array(path) if path in raw else None for path in facts.param_order]
        held = [states[path] for path in facts.state_order]
        weights = (ctypes.c_void_p * max(len(packed), 1))(*packed)
        self.symbols.bind(self._handle, _pointers(raws), _pointers(held), weights)
        self._kept = raws, held  # only now does nothing point at those before

    def _weight(self, params: Weights, wanted: Wanted) -> int | None:
        """Where a weight lies; None for one that no code of the entry reads."""
        if len(wanted.paths) == 1:
            (path,) = wanted.paths
            apart = path in self.generated.unread or path in self.generated.either
            return None if apart else params.packed(path)
        if all(joined.paths != wanted.paths for joined in self.generated.joined):
            return None
        if wanted.packed:
            return params.packed(wanted.paths)
        return _address(params.joined_array(wanted.paths))

    def sizes(self, named: Mapping[str, int]) -> dict[Symbol, int]:
        """The sizes that the code takes, in its order, of those of a call by name."""
        own = self.generated.function.generics
        return {g.var: named[g.name] for g in own if isinstance(g.var, Symbol)}

    def run(self, inputs: Sequence[Any], sizes: Sequence[int], outputs: Sequence[Any]) -> None:
        """One call. Raises `RunError` where it has no meaning on these inputs."""
        numbers = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
        self.call(_pointers(inputs), numbers, _pointers(outputs))

    def call(self, inputs: Any, sizes: Any, outputs: Any) -> None:
        """As `run`, with arrays of pointers and numbers as the code takes them."""
        code = self.symbols.run(self._handle, inputs, sizes, outputs, self._message, _MESSAGE)
        if code == 0:
            return
        said = self._message.value.decode("utf-8", "replace")
        raise MemoryError(said) if code == 2 else RunError(said)

    def profile(self) -> Part:
        """Where the time of the calls so far went."""
        if self.symbols.profile is None:
            raise RunError("the model was not loaded with a profile")
        count = self.symbols.profile(self._handle, None, 0)
        nodes = (Node * max(count, 1))()
        self.symbols.profile(self._handle, nodes, count)
        return tree(self.generated.function.name, nodes[:count], self.generated.places)

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
