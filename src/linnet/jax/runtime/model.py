"""The object users hold: a model with its parameters and its own state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from linnet.backends.checks import Bounds
from linnet.backends.errors import InputError, RunError
from linnet.backends.inputs import Checked, numpy_dtype
from linnet.backends.owner import Owner
from linnet.backends.signature import Signature, entry_named, frozen
from linnet.backends.source import block_args
from linnet.backends.turns import Turns
from linnet.ir import Function
from linnet.jax.runtime.arrays import settings, zeros_of
from linnet.jax.runtime.code import EntryCode, Loaded, Settings, execute, generate, prepare
from linnet.jax.runtime.failures import refusals
from linnet.jax.runtime.given import Parameters, is_gone, same_parameters
from linnet.jax.runtime.inputs import Reader
from linnet.jax.runtime.results import outside, structs
from linnet.jax.runtime.tree import Trees
from linnet.passes import Binding
from linnet.types import DType, GenericArg


class Program:
    """A bound program with the code made for its entries so far."""

    def __init__(
        self, binding: Binding, present: frozenset[str], how: Settings, default: str | None
    ) -> None:
        self.binding, self.present, self.settings, self.default = binding, present, how, default
        self.trees = Trees(binding)
        self._stacked: dict[frozenset[tuple[str, str]], Trees] = {}
        self.entries: dict[str, Function] = binding.program.entries(binding.block)
        self._signatures: dict[str, Signature] = {}
        self._codes: dict[Any, EntryCode] = {}
        self._loaded: dict[Any, Loaded] = {}
        self._tables: dict[Any, Any] = {}
        self._bounds = Bounds(binding)

    def signature(self, name: str) -> Signature:
        function = entry_named(self.entries, name)
        if name not in self._signatures:
            self._signatures[name] = Signature(name, function, block_args(self.binding))
        return self._signatures[name]

    def code(
        self, name: str, how: Settings, sizes: Mapping[str, GenericArg] | None = None
    ) -> EntryCode:
        key = (name, how, frozen(sizes))
        if key not in self._codes:
            title = str(self.binding.block or self.binding.program.root)
            self._codes[key] = generate(self.binding, name, how, self.present, sizes, title)
        return self._codes[key]

    def loaded(self, name: str, how: Settings, checked: Checked) -> Loaded:
        """The entry's code for these inputs; dtype and shape generics are part of it."""
        sizes = self.signature(name).forms(checked.generics)
        key = (name, how, frozen(sizes))
        if key not in self._loaded:
            self._loaded[key] = execute(self.code(name, how, sizes or None), self.binding, name)
        return self._loaded[key]

    def params(self, loaded: Loaded, find: Any) -> Any:
        """The tree of parameters as the code takes it."""
        stacked = loaded.code.stacked
        if stacked not in self._stacked:
            self._stacked[stacked] = Trees(self.binding, stacked)
        return self._stacked[stacked].params(find, loaded.makers)

    def read(self, name: str, inputs: Any, generics: Mapping[str, Any] | None) -> Checked:
        """The inputs as compiled code takes them, everything about them checked."""
        signature = self.signature(name)
        checked = Reader(signature).read(inputs, generics)
        self._bounds.check(signature, checked)
        return checked

    def call(self, name: str, loaded: Loaded, checked: Checked, params: Any, state: Any) -> Any:
        """`(result, state)` of one call, on trees of parameters and states."""
        callee = loaded.code.callee
        entry = self.signature(name)
        kinds = [p.type for p in callee.function.params]
        args = [structs(t, v, loaded) for t, v in zip(kinds, checked.values, strict=False)]
        if loaded.code.plan.stepped:  # every layer takes them: placed once
            args = jax.device_put(args)
        args += self._ready(loaded)
        sizes = entry.sizes(checked.generics)
        args += [sizes[callee.function.generics[index].name] for index in callee.size_args]
        context = [params] * callee.takes_block + [state] * callee.takes_state
        result = loaded.function(*context, *args)
        if callee.writes:
            result, state = result if callee.function.body.results else (None, result)
        return result, state

    def _ready(self, loaded: Loaded) -> tuple[Any, ...]:
        """Tables made once; those of different entries that are equal are one."""
        if loaded.ready is None:
            with jax.ensure_compile_time_eval():  # they outlive a program that is being traced
                loaded.ready = tuple(jax.tree.map(self._one, made) for made in prepare(loaded))
        return loaded.ready

    def _one(self, array: jax.Array) -> jax.Array:
        content = np.asarray(array)
        key = (content.shape, str(content.dtype), hash(content.tobytes()))
        kept = self._tables.setdefault(key, array)
        return kept if np.array_equal(np.asarray(kept), content) else array


class Model(Owner):
    """A loaded model: `model(...)` runs its default entry, `run_entry` any.

    `parameters` holds one array a path. States start at zero; a call takes over their storage, so
    `state` gives copies. `static_shapes` says that every shape of inputs is compiled by itself.
    """

    static_shapes = True

    def __init__(self, program: Program, parameters: Mapping[str, jax.Array]) -> None:
        self._program = program
        self._parameters = dict(parameters)
        self._turns = Turns(bool(program.binding.states))
        self._built: dict[Any, Any] = {}  # trees of parameters and of what is made of them
        self._state: Any = None
        self.reset_state()

    # --- calls ------------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs the default entry; inputs in order or by name."""
        return self.run_entry(
            self._default(), self._program.signature(self._default()).together(inputs, named)
        )

    def _default(self) -> str:
        name = self._program.default
        if name is None:
            known = ", ".join(sorted(self._program.entries)) or "none"
            raise InputError(f"the model has no default entry: use run_entry with one of {known}")
        return name

    def run_entry(
        self, name: str, inputs: Any = (), generics: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs an entry on a list or a dict of inputs. Raises `InputError` before anything runs
        where they do not fit; `generics` gives those of the entry that no input's shape shows."""
        self._turns.alone("a call of `{}`", name)
        with self._turns.lock, settings():
            program = self._program
            checked = program.read(name, inputs, generics)
            loaded = program.loaded(name, program.settings, checked)
            self._turns.whole()
            return self._run(name, loaded, checked)

    def _run(self, name: str, loaded: Loaded, checked: Checked) -> Any:
        callee = loaded.code.callee
        program = self._program
        entry = program.signature(name)
        with refusals(entry):
            params = self._params(loaded) if callee.takes_block else None
            program._ready(loaded)
        if callee.writes:
            self._turns.failed(name)
        try:
            with refusals(entry):
                result, state = program.call(name, loaded, checked, params, self._state)
        except (InputError, RunError):  # refused while traced: the state is whole if it is here
            if not any(map(is_gone, jax.tree.leaves(self._state))):
                self._turns.broken = None
            raise
        if callee.writes:
            self._state = state
        kinds = callee.function.result_types
        made = outside(kinds[0], result) if kinds else None
        if kinds and callee.takes_state:
            made = self._apart(made)
        if callee.writes:
            self._turns.broken = None  # last: a call that raises is never one that went well
        return made

    def _params(self, loaded: Loaded) -> Any:
        key = loaded.code.stacked, loaded.code.plan.kept
        if key not in self._built:
            self._built[key] = self._program.params(loaded, self._parameters.get)
        return self._built[key]

    def _apart(self, result: Any) -> Any:
        """The result, none of which shares memory with a state that a later call takes over."""
        states = jax.tree.leaves(self._state)
        kinds = {(s.shape, s.dtype) for s in states}

        def apart(leaf: Any) -> Any:
            if not isinstance(leaf, jax.Array) or (leaf.shape, leaf.dtype) not in kinds:
                return leaf
            here = leaf.unsafe_buffer_pointer()
            return (
                jnp.copy(leaf) if any(s.unsafe_buffer_pointer() == here for s in states) else leaf
            )

        return jax.tree.map(apart, result)

    # --- pure -------------------------------------------------------------------------------------

    def apply(self, params: Mapping[str, Any], *inputs: Any, **named: Any) -> Any:
        """The default entry as a pure function of the parameters by path; see `Entry.apply`."""
        from linnet.jax.runtime.entry import Entry

        return Entry(self._program, self._parameters, self._default()).apply(
            params, *inputs, **named
        )

    @property
    def parameters(self) -> Parameters:
        """The parameters and buffers by path, to read; assigning a dict of other arrays changes the
        model's: `model.parameters = {**model.parameters, path: array}`."""
        return Parameters(self._parameters)

    @parameters.setter
    def parameters(self, values: Mapping[str, Any]) -> None:
        self._turns.alone("an assignment to `{}`", "parameters")
        with self._turns.lock:
            self._parameters = same_parameters(self._parameters, values)
            self._built.clear()

    # --- state ------------------------------------------------------------------------------------

    def reset_state(self) -> None:
        """Sets every state to zero."""
        self._turns.alone("`{}`", "reset_state")
        with self._turns.lock, settings():
            kinds = {s.path: s.type for s in self._program.binding.states}
            self._turns.failed("reset_state")
            self._state = None  # free the old before the new is made
            self._state = self._program.trees.states(
                lambda path: zeros_of(kinds[path], self._program.settings.bits)
            )
            self._turns.broken = None

    def state_paths(self) -> list[str]:
        """The paths of the model's states, in source order."""
        return [s.path for s in self._program.binding.states]

    def state(self, path: str) -> jax.Array:
        """A copy of one state's value between two calls."""
        kind = {s.path: s.type.dtype for s in self._program.binding.states}.get(path)
        if kind is None:
            raise KeyError(f"there is no state `{path}`")
        assert isinstance(kind, DType)
        self._turns.alone("`{}`", "state")
        with self._turns.lock:  # a call takes over the arrays
            found = {} if self._state is None else self._program.trees.flat_states(self._state)
            if path not in found or is_gone(found[path]):
                self._turns.whole()
            array, dtype = found[path], numpy_dtype(kind)
            held = array.dtype != dtype
            return lax.bitcast_convert_type(array, dtype) if held else jnp.copy(array)

    # --- what it is -------------------------------------------------------------------------------

    @property
    def binding(self) -> Binding:
        """The bound program."""
        return self._program.binding

    def entries(self) -> list[str]:
        """The entries' names."""
        return sorted(self._program.entries)

    def signature(self, name: str) -> str:
        """An entry's signature in the source's words."""
        return str(self._program.signature(name))

    def generated_source(
        self, entry: str | None = None, generics: Mapping[str, Any] | None = None
    ) -> str:
        """The Python module that runs an entry (the default one)."""
        return source_of(self._program, entry or self._default(), generics, self._program.settings)


def source_of(
    program: Program, name: str, generics: Mapping[str, Any] | None, how: Settings
) -> str:
    signature = program.signature(name)
    sizes = signature.forms(signature.given_generics(generics))
    return program.code(name, how, sizes or None).generated.text
