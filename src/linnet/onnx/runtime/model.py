"""The object users hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx_ir as ir

from linnet.backends.checks import Bounds
from linnet.backends.errors import InputError
from linnet.backends.inputs import Checked, Reader
from linnet.backends.owner import Owner
from linnet.backends.recent import Recent
from linnet.backends.repeat import Alike, key_of
from linnet.backends.signature import Signature, entry_named
from linnet.backends.source import block_args
from linnet.backends.turns import Turns
from linnet.dims import Dim, Symbol
from linnet.onnx.emit.dtypes import concrete
from linnet.onnx.emit.entry import Written
from linnet.onnx.emit.members import shape_of
from linnet.onnx.emit.sizes import solutions
from linnet.onnx.export import write
from linnet.onnx.runtime.aliasing import updated_in_place
from linnet.onnx.runtime.memory import Memory
from linnet.onnx.runtime.repeat import Repeat
from linnet.onnx.runtime.session import EntrySession, Options, Shape, within
from linnet.onnx.runtime.states import Buffer, States
from linnet.onnx.runtime.values import (
    Array,
    Arrays,
    assembled,
    dtype_of,
    leaves,
    pattern,
    to_ort,
    unwrapped,
)
from linnet.passes import Binding
from linnet.types import GenericArg, TensorType


class Model(Owner):
    """A loaded model: `model(...)` runs its default entry, `run_entry` any.

    Every entry is a session made when first called; all of them read one copy of the weights.
    `binding` is the program with its sizes.
    """

    def __init__(
        self, binding: Binding, tensors: Mapping[str, Array], tied: Mapping[str, str],
        default: str | None, numerics: str, opset: int, options: Options,
    ) -> None:  # fmt: skip
        self.binding, self._default = binding, default
        self._numerics, self._opset, self._options = numerics, opset, options
        self._entries = binding.program.entries(binding.block)
        self._tied = dict(tied)
        self._present = frozenset((*tensors, *tied))
        self._tensors = dict(tensors)
        self._weights = {
            info.path: to_ort(tensors[info.path], concrete(info.type.dtype))
            for info in binding.params
            if info.path in tensors
        }
        memory = Memory(large=False)
        self._states = States({
            s.path: Buffer.zeros(shape_of(s.type), concrete(s.type.dtype), memory)
            for s in binding.states
        })  # fmt: skip
        self._signatures: dict[str, Signature] = {}
        self._open: dict[str, frozenset[str]] = {}  # generics by entry
        self._sessions: dict[Any, EntrySession] = {}
        self._repeats: Recent[Alike, Repeat | None] = Recent()  # None: they go the full way
        self._bounds = Bounds(binding)
        self._turns = Turns(bool(binding.states))

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
        """Runs an entry on a list or a dict of inputs; results are NumPy arrays. Raises
        `InputError` before anything runs where they do not fit; `generics` gives those of the
        entry that no input's shape shows."""
        self._turns.alone("a call of `{}`", name)
        with self._turns.lock:
            given = tuple(inputs) if isinstance(inputs, list) else inputs
            alike = None if generics is not None or self._turns.broken else key_of(name, given)
            repeat = None if alike is None else self._repeats.get(alike)
            held = None if repeat is None else repeat.take(given)
            if repeat is not None and held is not None:
                return self._run(name, repeat.session, repeat.shapes, held)
            signature = self._signature(name)
            checked = Reader(signature, Arrays()).read(unwrapped(given), generics)
            self._bounds.check(signature, checked)
            arrays = [
                array
                for slot, value in zip(signature.slots, checked.values, strict=True)
                for array in leaves(slot.bound, value)
            ]
            sizes = signature.sizes(checked.generics)
            session = self._session(name, signature, checked, sizes, arrays)
            self._turns.whole()
            result = self._run(name, session, session.shapes(sizes), arrays)
            if alike is not None and alike not in self._repeats:
                needs = self._bounds.of(signature, signature.forms(checked.generics))
                self._repeats[alike] = Repeat.of(session, signature, needs, given, checked)
            return result

    def _run(
        self, name: str, session: EntrySession, shapes: Sequence[Shape], arrays: list[Array]
    ) -> Any:
        try:
            given = [(array, dtype_of(array)) for array in arrays]
            results, written = session.run(given, self._states, shapes)
            made = assembled(session.written.result, results)
        except BaseException:
            if session.writes_in_place():
                self._turns.failed(name)
            raise
        if written:  # last, so that a call that fails before changes nothing
            self._turns.failed(name)
            self._states.swap(written)
            self._turns.broken = None
        return made

    def _signature(self, name: str) -> Signature:
        function = entry_named(self._entries, name)
        if name not in self._signatures:
            self._signatures[name] = Signature(name, function, block_args(self.binding))
            self._open[name] = _open(self._signatures[name])
        return self._signatures[name]

    def _session(
        self, name: str, signature: Signature, checked: Checked, sizes: Mapping[str, int],
        arrays: list[Array],
    ) -> EntrySession:  # fmt: skip
        """The session for inputs of this kind: the one that trusts them, where they allow it.

        Sizes of 0 have sessions of their own: the runtime's operators refuse what is empty, so
        that an op has to know of it to run its body.
        """
        fixed = {
            g.name: checked.generics[g.var]
            for g in signature.generics
            if g.name not in self._open[name] or checked.generics[g.var] == Dim.of(0)
        }
        shown = tuple(
            pattern(slot.bound, value)
            for slot, value in zip(signature.slots, checked.values, strict=True)
        )
        key = (name, tuple(sorted(fixed.items(), key=lambda item: item[0])), shown)
        absent = frozenset(
            slot.name
            for slot, value in zip(signature.slots, checked.values, strict=True)
            if value is None
        )
        session = self._made((*key, True), name, fixed, absent)
        if within(arrays, session.limits(sizes)):
            return session
        return self._made((*key, False), name, fixed, absent)

    def _made(
        self, key: tuple[Any, ...], name: str, fixed: Mapping[str, GenericArg],
        absent: frozenset[str],
    ) -> EntrySession:  # fmt: skip
        """The session of a key, whose last part says whether it trusts its inputs."""
        if key not in self._sessions:
            written = self._write(name, fixed or None, absent, trusting=key[-1])
            self._sessions[key] = EntrySession(written, self._weights, self._options)
        return self._sessions[key]

    def _write(
        self, name: str, sizes: Mapping[str, Any] | None,
        absent: frozenset[str] = frozenset(), *, trusting: bool = True,
    ) -> Written:  # fmt: skip
        """The entry for a session here; operators that need states in place only where they are."""
        trusting = trusting and not self._options.exact
        options: dict[str, Any] = {
            "sizes": sizes, "present": self._present, "tied": self._tied, "opset": self._opset,
            "numerics": self._numerics, "runtime_operators": True, "absent": absent,
            "trusting": trusting,
        }  # fmt: skip
        written = write(self.binding, name, **options, appends=trusting)
        if all(updated_in_place(written).get(path) for path in written.appended):
            return written
        return write(self.binding, name, **options)

    # --- state ----------------------------------------------------------------------------------

    def reset_state(self) -> None:
        """Sets every state to zero."""
        self._turns.alone("`{}`", "reset_state")
        with self._turns.lock:
            self._turns.failed("reset_state")
            for buffer in self._states.buffers.values():
                buffer.array.fill(0)
            self._turns.broken = None

    def state_paths(self) -> list[str]:
        """The paths of the model's states, in source order."""
        return list(self._states.buffers)

    def state(self, path: str) -> Array:
        """A copy of one state's value between two calls."""
        self._turns.alone("`{}`", "state")
        with self._turns.lock:
            if path not in self._states.buffers:
                raise KeyError(f"there is no state `{path}`")
            return np.array(self._states.buffers[path].array)

    def entries(self) -> list[str]:
        """The names of the model's entries, in source order."""
        return list(self._entries)

    def signature(self, name: str) -> str:
        """An entry's signature in the source's words."""
        return str(self._signature(name))

    # --- looking inside -------------------------------------------------------------------------

    @property
    def parameters(self) -> Mapping[str, Array]:
        """The weights by path; tied paths hold one array."""
        arrays = self._tensors
        tied = {path: arrays[first] for path, first in self._tied.items()}
        return MappingProxyType({**arrays, **tied})

    def generated_source(
        self, entry: str | None = None, generics: Mapping[str, Any] | None = None
    ) -> str:
        """The ONNX model of an entry as text, without weights; `generics` fixes sizes."""
        name = entry or self._default
        if name is None:
            raise InputError("the model has no default entry: name one")
        self._signature(name)  # raises where there is no such entry
        written = self._write(name, generics)
        return str(ir.to_onnx_text(written.model, exclude_initializers=True))


def _open(signature: Signature) -> frozenset[str]:
    """The generics that one model serves every value of: sizes that inputs' shapes give. Dtypes,
    ranks and other sizes have a model for each value."""
    shapes = [
        [dim for dim in slot.bound.shape if isinstance(dim, Dim)]
        for slot in signature.slots
        if isinstance(slot.bound, TensorType)
    ]
    wanted = [g.var for g in signature.generics if isinstance(g.var, Symbol)]
    found = solutions(shapes, wanted, plain=True)
    return frozenset(g.name for g in signature.generics if g.var in found)
