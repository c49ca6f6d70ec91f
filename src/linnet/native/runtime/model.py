"""The object users hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from linnet.backends.checks import Bounds
from linnet.backends.errors import InputError, StateError
from linnet.backends.inputs import Checked, Reader, numpy_dtype
from linnet.backends.owner import Owner
from linnet.backends.recent import Recent
from linnet.backends.repeat import Alike, key_of
from linnet.backends.signature import Signature, entry_named, frozen
from linnet.backends.turns import Turns
from linnet.native.emit.module import Generated
from linnet.native.runtime.code import Entry, Symbols, generate, load_symbols
from linnet.native.runtime.front import Front
from linnet.native.runtime.kept import Kept, entry_key
from linnet.native.runtime.library import Library
from linnet.native.runtime.memory import zeros
from linnet.native.runtime.packing import Weights
from linnet.native.runtime.profile import Part
from linnet.native.runtime.repeat import Repeat
from linnet.native.runtime.values import NumPyArrays, flattened, rebuilt, results
from linnet.native.toolchain.build import build, is_built
from linnet.native.toolchain.jobs import Workers
from linnet.passes import Binding
from linnet.types import DType, GenericArg, TensorType

T = TypeVar("T")
Array = np.ndarray[Any, Any]
Sizes = Mapping[str, GenericArg]
Key = tuple[str, Any]  # an entry's name, and the dtypes and shapes among its generics


class Model(Owner):
    """A loaded model: `model(...)` runs its default entry, `run_entry` any.

    Inputs and results are NumPy arrays. States start at zero and belong to this object; one call
    runs at a time. An entry is compiled when it is first called, unless the cache has it.

    A signal's handler or a finaliser may call it while a call runs. Only within what changes the
    model itself (a first call, `prepare`, `reset_state`, `parameters`) another such change raises
    `StateError`.
    """

    def __init__(
        self,
        front: Front,
        weights: Weights,
        numerics: str,
        threads: int | None = None,
        profile: bool = False,
    ) -> None:
        self._front, self._facts = front, front.facts
        self._profile = profile
        self._weights, self._threads = weights, threads
        self._numerics, self._default = numerics, front.facts.default
        self._entries = front.facts.entries
        self._signatures: dict[str, Signature] = {}
        self._bounds = Bounds(lambda: front.binding)
        self._generated: dict[Key, Generated] = {}
        self._loaded: dict[Key, Entry] = {}
        self._paths: dict[Key, Path] = {}  # of compiled objects, where they are known
        self._repeats: Recent[Alike, Repeat | None] = Recent()  # None: they go the full way
        self._unkept: dict[Key, str | None] = {}  # what code is to be kept under
        self._turns = Turns(bool(front.facts.states))
        self._states = self._zeros()

    @property
    def binding(self) -> Binding:
        """The program with its root block's generics filled in."""
        return self._front.binding

    # --- calls ----------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs the default entry; inputs in order or by name."""
        name = self._default
        if name is None:
            known = ", ".join(sorted(self._entries)) or "none"
            raise InputError(f"the model has no default entry: use run_entry with one of {known}")
        return self.run_entry(name, self._signature(name).together(inputs, named))

    def run_entry(
        self, name: str, inputs: Any = (), generics: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs an entry on a list or a dict of inputs. Raises `InputError` before anything runs
        where they do not fit; `generics` gives those of the entry that no input's shape shows."""
        with self._turns.lock:
            if type(inputs) is list:
                inputs = tuple(inputs)  # the caller's own list may change meanwhile
            alike = None if generics is not None or self._turns.broken else key_of(name, inputs)
            repeat = None if alike is None else self._repeats.get(alike)
            call = None if repeat is None else repeat.take(inputs)
            if call is not None:
                with self._breaking(name, call.entry):
                    return call.run()
            signature = self._signature(name)
            checked = Reader(signature, NumPyArrays()).read(inputs, generics)
            sizes = signature.forms(checked.generics)
            self._find(name, sizes)
            self._bounds.check(signature, checked)
            entry = self._entry(name, sizes)
            self._turns.whole()
            result = self._run(name, signature, entry, checked)
            if alike is not None and alike not in self._repeats:
                needs = self._bounds.of(signature, sizes)
                self._repeats[alike] = Repeat.of(entry, signature, needs, inputs, checked)
            return result

    @contextmanager
    def _breaking(self, name: str, entry: Entry) -> Iterator[None]:
        """Takes note of a call that fails after it may have changed the state. Raises `StateError`
        where one within this call did: it may have come before this one's own work."""
        try:
            yield
        except BaseException:
            if entry.generated.writes:
                self._turns.failed(name)
            raise
        self._turns.whole()

    def _run(self, name: str, signature: Signature, entry: Entry, checked: Checked) -> Any:
        function = entry.generated.function
        sizes = entry.sizes(signature.sizes(checked.generics))
        pairs = zip(function.params, checked.values, strict=True)
        leaves = [leaf for param, value in pairs for leaf in flattened(param.type, value)]
        kinds = function.result_types
        outputs = results(kinds[0], sizes) if kinds else []
        with self._breaking(name, entry):
            entry.run(leaves, list(sizes.values()), outputs)
        return rebuilt(kinds[0], iter(outputs)) if kinds else None

    def _alone(self, change: Callable[[], T]) -> T:
        """Changes what code the model has, or what that is bound to, the lock being held. No
        such change may begin inside another of the same thread: it would find that one half
        done."""
        if self._turns.changing:
            raise StateError(
                "the model is being prepared or reset by what this call interrupts (from a "
                "signal's handler or a finaliser); call again when that is over"
            )
        self._turns.changing = True
        try:
            return change()
        finally:
            self._turns.changing = False

    def _signature(self, name: str) -> Signature:
        function = entry_named(self._entries, name)
        if name not in self._signatures:
            self._signatures[name] = Signature(name, function, self._facts.block_args)
        return self._signatures[name]

    # --- code -----------------------------------------------------------------------------------

    def _entry(self, name: str, sizes: Sizes) -> Entry:
        """The entry's machine code, compiled where the cache has none, bound to weights and
        states."""
        key = (name, frozen(sizes))
        if key not in self._loaded:
            self._alone(lambda: self._load(key, sizes))
        return self._loaded[key]

    def _load(self, key: Key, sizes: Sizes) -> None:
        if key in self._loaded:
            return  # by a call inside this one, before the change began
        generated = self._code(key[0], sizes)
        path = self._paths.get(key)
        symbols = self._symbols(generated) if path is None else self._opened(generated, path)
        self._keep(key)
        entry = Entry(generated, symbols)
        self._bind(entry)
        self._loaded[key] = entry

    def prepare(self, *names: str, note: Callable[[], None] | None = None) -> None:
        """Has the code of entries ready before they are called, compiled side by side where the
        cache has none; `note` is called before any is compiled. Raises `NativeError`."""
        with self._turns.lock:
            # An open one has code for each dtype and shape.
            signatures = [s for name in names if not (s := self._signature(name)).is_open]
            for signature in signatures:
                self._find(signature.name, {})
            self._alone(lambda: self._prepare(signatures, note))

    def _prepare(self, signatures: Sequence[Signature], note: Callable[[], None] | None) -> None:
        wanted: list[Key] = []
        for signature in signatures:
            key = (signature.name, ())
            if key not in self._loaded and key not in self._paths:
                self._bounds.of(signature, {})
                self._code(signature.name, {})
                wanted.append(key)
        if note is not None and not all(self._is_built(key) for key in wanted):
            note()
        with Workers(len(wanted)) as workers:
            made = workers.map(lambda key: self._object(self._generated[key]), wanted)
        self._paths.update(zip(wanted, made, strict=True))
        for key in wanted:
            self._keep(key)

    def _is_built(self, key: Key) -> bool:
        generated = self._generated[key]
        return is_built(generated.text, self._numerics, generated.kernels)

    def _symbols(self, generated: Generated) -> Symbols:
        return self._opened(generated, self._object(generated))

    def _object(self, generated: Generated) -> Path:
        return build(generated.text, self._numerics, with_kernels=generated.kernels)

    def _opened(self, generated: Generated, path: Path) -> Symbols:
        if generated.kernels:
            Library.get().set_threads(self._threads or 0)
        return load_symbols(path)

    def _bind(self, entry: Entry) -> None:
        entry.bind(self._facts, self._weights, self._states)
        self._weights.release()

    # --- what the cache knows ---------------------------------------------------------------------

    def _kept_name(self, name: str, sizes: Sizes) -> str | None:
        """What an entry's code is kept under: everything that its text depends on."""
        if self._front.key is None:
            return None
        storage = self._weights.storage()
        return entry_key(
            (self._front.key, name, repr(sorted((n, str(v)) for n, v in sizes.items())),
             self._numerics, str(self._profile), *sorted(self._weights.paths), "tied",
             *(f"{a} {b}" for a, b in sorted(storage.tied.items())), "kinds",
             *(f"{a} {b}" for a, b in sorted(storage.kinds.items())), repr(storage.groups)),
            self._numerics,
        )  # fmt: skip

    def _find(self, name: str, sizes: Sizes) -> None:
        """Takes up an entry's code as an earlier process kept it."""
        key = (name, frozen(sizes))
        if key not in self._generated and key not in self._unkept:
            self._alone(lambda: self._take_up(key, sizes))

    def _take_up(self, key: Key, sizes: Sizes) -> None:
        if key in self._generated or key in self._unkept:
            return  # as in `_load`
        kept_name = self._kept_name(key[0], sizes)
        kept = None if kept_name is None else Kept.read(kept_name)
        if kept is None:
            self._unkept[key] = kept_name
            return
        self._generated[key], self._paths[key] = kept.generated, kept.path
        self._bounds.known.setdefault(key, kept.requirements)
        self._weights.claim(kept.generated.joined)

    def _keep(self, key: Key) -> None:
        """Keeps an entry's code for later processes."""
        kept_name = self._unkept.get(key)
        if kept_name is None or key not in self._bounds.known:
            return
        generated = self._generated[key]
        Kept.write(kept_name, generated, self._bounds.known[key], self._object(generated))
        self._unkept[key] = None

    def _code(self, name: str, sizes: Mapping[str, GenericArg]) -> Generated:
        key = (name, frozen(sizes))
        if key not in self._generated:
            title = self._facts.title
            self._generated[key] = generate(
                self.binding, name, self._numerics, self._weights.paths, sizes or None,
                f"{title}, entry {name}", self._profile, self._weights.storage(),
            )  # fmt: skip
            self._weights.claim(self._generated[key].joined)
        return self._generated[key]

    def profile(self, entry: str) -> list[Part]:
        """Where the time of an entry's calls went, for each form of it that was called: for models
        loaded with `profile`."""
        with self._turns.lock:
            return [each.profile() for key, each in self._loaded.items() if key[0] == entry]

    # --- state ----------------------------------------------------------------------------------

    def _zeros(self) -> dict[str, Array]:
        return {s.path: _zeros(s.type, s.path) for s in self._facts.states}

    def reset_state(self) -> None:
        """Sets every state to zero. Memory that is not written to again is given back."""
        with self._turns.lock:
            self._alone(self._reset)

    def _reset(self) -> None:
        fresh = self._zeros()
        # Until every entry has the new ones, whatever interrupts this finds a state that is no
        # state; entries keep those they are bound to.
        self._turns.failed("reset_state")
        self._states = fresh
        for entry in self._loaded.values():
            self._bind(entry)
        self._turns.broken = None

    def state_paths(self) -> list[str]:
        """The paths of the model's states, in source order."""
        return list(self._states)

    def state(self, path: str) -> Array:
        """A copy of one state's present value."""
        if path not in self._states:
            raise KeyError(f"there is no state `{path}`")
        with self._turns.lock:
            return self._states[path].copy()

    # --- what it is -----------------------------------------------------------------------------

    @property
    def parameters(self) -> Mapping[str, Array]:
        """The parameters by path, with the values that the model computes with: under a
        `weights_format` those that the format holds. To look at, and to fill in place before the
        first call; where a weight is held in another form than its floats, or is going to be, its
        array is a copy, made for whoever asks, that cannot be written to."""
        with self._turns.lock:
            found = self._alone(lambda: {p: self._weights.shown(p) for p in self._weights.paths})
        return MappingProxyType({p: array for p, array in found.items() if array is not None})

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
        forms = signature.forms(signature.given_generics(generics))
        with self._turns.lock:
            return self._alone(lambda: self._code(name, forms)).text


def _zeros(type_: TensorType, path: str) -> Array:
    assert isinstance(type_.dtype, DType)
    shape = [dim.constant or 0 for dim in type_.dims]
    return zeros(shape, numpy_dtype(type_.dtype), f"the state `{path}`")
