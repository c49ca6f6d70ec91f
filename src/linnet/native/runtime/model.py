"""The object users hold."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from linnet.backends.checks import Bounds
from linnet.backends.errors import InputError, StateError
from linnet.backends.inputs import Checked, Reader, numpy_dtype
from linnet.backends.signature import Signature
from linnet.backends.source import block_args
from linnet.dims import Dim, Symbol
from linnet.ir import Function
from linnet.native.emit.module import Generated
from linnet.native.runtime.code import Entry, Symbols, generate, load_symbols
from linnet.native.runtime.packing import Library, Weights
from linnet.native.runtime.values import NumPyArrays, flattened, rebuilt, results
from linnet.native.toolchain.build import build
from linnet.passes import Binding
from linnet.types import DType, DTypeVar, GenericArg, PackVar, TensorType

Array = np.ndarray[Any, Any]


class Model:
    """A loaded model: `model(...)` runs its default entry, `run_entry` any.

    Inputs and results are NumPy arrays. States start at zero and belong to this object; one call
    runs at a time. An entry is compiled when it is first called, unless the cache has it.
    """

    def __init__(
        self,
        binding: Binding,
        weights: Weights,
        numerics: str,
        default: str | None,
        threads: int | None = None,
    ) -> None:
        self.binding = binding
        self._weights, self._threads = weights, threads
        self._numerics, self._default = numerics, default
        self._entries: dict[str, Function] = binding.program.entries(binding.block)
        self._block_args = block_args(binding)
        self._signatures: dict[str, Signature] = {}
        self._bounds = Bounds(binding)
        self._generated: dict[Any, Generated] = {}
        self._loaded: dict[Any, Entry] = {}
        self._lock = threading.RLock()
        self._broken: str | None = None
        self._states = self._zeros()

    # --- calls ----------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs the default entry; inputs in order or by name."""
        name = self._default
        if name is None:
            known = ", ".join(sorted(self._entries)) or "none"
            raise InputError(f"the model has no default entry: use run_entry with one of {known}")
        if not named:
            return self.run_entry(name, list(inputs))
        signature = self._signature(name)
        for slot, value in zip(signature.slots, inputs, strict=False):
            if slot.name in named:
                raise signature.fail(f"the input `{slot.name}` is given twice")
            named[slot.name] = value
        return self.run_entry(name, named)

    def run_entry(
        self, name: str, inputs: Any = (), generics: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs an entry on a list or a dict of inputs. Raises `InputError` before anything runs
        where they do not fit; `generics` gives those of the entry that no input's shape shows."""
        signature = self._signature(name)
        with self._lock:
            checked = Reader(signature, NumPyArrays()).read(inputs, generics)
            self._bounds.check(signature, checked)
            entry = self._entry(name, signature, checked)
            if self._broken is not None:
                raise StateError(
                    f"an earlier call of `{self._broken}` failed part-way and left the state half "
                    "changed; call reset_state() first"
                )
            return self._run(name, signature, entry, checked)

    def _run(self, name: str, signature: Signature, entry: Entry, checked: Checked) -> Any:
        function = entry.generated.function
        by_name = {g.name: checked.generics[g.var] for g in signature.generics}
        sizes: dict[Symbol, int] = {}
        for generic in function.generics:
            value = by_name[generic.name]
            if isinstance(generic.var, Symbol) and isinstance(value, Dim):
                sizes[generic.var] = value.constant or 0
        pairs = zip(function.params, checked.values, strict=True)
        leaves = [leaf for param, value in pairs for leaf in flattened(param.type, value)]
        kinds = function.result_types
        outputs = results(kinds[0], sizes) if kinds else []
        try:
            entry.run(leaves, [sizes[g.var] for g in function.generics
                               if isinstance(g.var, Symbol)], outputs)  # fmt: skip
        except BaseException:
            if entry.generated.writes:
                self._broken = name
            raise
        return rebuilt(kinds[0], iter(outputs)) if kinds else None

    def _signature(self, name: str) -> Signature:
        if name not in self._signatures:
            function = self._entries.get(name)
            if function is None:
                known = ", ".join(sorted(self._entries)) or "none"
                raise InputError(f"there is no entry `{name}`; the model's entries: {known}")
            self._signatures[name] = Signature(name, function, self._block_args)
        return self._signatures[name]

    # --- code -----------------------------------------------------------------------------------

    def _entry(self, name: str, signature: Signature, checked: Checked) -> Entry:
        sizes = {
            g.name: checked.generics[g.var]
            for g in signature.generics
            if isinstance(g.var, DTypeVar | PackVar)
        }
        key = (name, _frozen(sizes))
        if key not in self._loaded:
            generated = self._code(name, sizes)
            entry = Entry(generated, self._symbols(generated))
            self._bind(entry)
            self._loaded[key] = entry
        return self._loaded[key]

    def _symbols(self, generated: Generated) -> Symbols:
        path = build(generated.text, self._numerics, with_kernels=generated.kernels)
        if generated.kernels:
            Library.get().set_threads(self._threads or 0)
        return load_symbols(path)

    def _bind(self, entry: Entry) -> None:
        entry.bind(self.binding, self._weights, self._states)
        self._weights.release()

    def _code(self, name: str, sizes: Mapping[str, GenericArg]) -> Generated:
        key = (name, _frozen(sizes))
        if key not in self._generated:
            title = str(self.binding.block or self.binding.program.root)
            self._generated[key] = generate(
                self.binding, name, self._numerics, self._weights.paths, sizes or None,
                f"{title}, entry {name}",
            )  # fmt: skip
        return self._generated[key]

    # --- state ----------------------------------------------------------------------------------

    def _zeros(self) -> dict[str, Array]:
        return {s.path: _zeros(s.type) for s in self.binding.states}

    def reset_state(self) -> None:
        """Sets every state to zero. Memory that is not written to again is given back."""
        with self._lock:
            self._states = self._zeros()
            for entry in self._loaded.values():
                self._bind(entry)
            self._broken = None

    def state_paths(self) -> list[str]:
        """The paths of the model's states, in source order."""
        return list(self._states)

    def state(self, path: str) -> Array:
        """A copy of one state's present value."""
        if path not in self._states:
            raise KeyError(f"there is no state `{path}`")
        with self._lock:
            return self._states[path].copy()

    # --- what it is -----------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters by path."""
        found = {path: self._weights.array(path) for path in self._weights.paths}
        return {path: array for path, array in found.items() if array is not None}

    def entries(self) -> list[str]:
        """The entries' names."""
        return sorted(self._entries)

    def signature(self, name: str) -> str:
        """An entry's signature in the source's words."""
        return str(self._signature(name))

    def generated_source(
        self, entry: str | None = None, generics: Mapping[str, Any] | None = None
    ) -> str:
        """The C++ that runs an entry (the default one when none is named). `generics` gives the
        entry's own dtypes and shapes, where it has any."""
        name = entry if entry is not None else self._default
        if name is None:
            raise InputError("name an entry: the model has no default one")
        signature = self._signature(name)
        known = signature.given_generics(generics)
        sizes = {g.name: known[g.var] for g in signature.generics
                 if g.var in known and isinstance(g.var, DTypeVar | PackVar)}  # fmt: skip
        return self._code(name, sizes).text


def _zeros(type_: TensorType) -> Array:
    assert isinstance(type_.dtype, DType)
    return np.zeros([dim.constant or 0 for dim in type_.dims], numpy_dtype(type_.dtype))


def _frozen(sizes: Mapping[str, GenericArg]) -> Any:
    return tuple(sorted(sizes.items(), key=lambda item: item[0]))
