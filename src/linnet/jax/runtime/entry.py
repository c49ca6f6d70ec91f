"""One entry as a pure function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from linnet.backends.errors import InputError
from linnet.jax.runtime.arrays import settings, zeros_of
from linnet.jax.runtime.results import outside

if TYPE_CHECKING:
    from linnet.jax.runtime.code import Loaded
    from linnet.jax.runtime.model import Program

Flat = Mapping[str, Any]


class Entry:
    """An entry of a bound program as a pure function, with the parameters it was loaded with.

    `f(*inputs)` gives the result; an entry with state `f(*inputs, state=...) -> (result,
    new_state)`, states being arrays by path and all zero where none are given.
    """

    def __init__(
        self, program: Program, parameters: Flat, name: str | None, donate: bool = False
    ) -> None:
        if name is None:
            known = ", ".join(sorted(program.entries)) or "none"
            raise InputError(f"which entry? choose with entry= one of {known}")
        self._program, self._parameters, self.name = program, dict(parameters), name
        self._how = replace(program.settings, donate=donate, bits=False)
        self._trees: dict[Any, Any] = {}

    @property
    def parameters(self) -> dict[str, jax.Array]:
        """The parameters and buffers, one array a path."""
        return dict(self._parameters)

    def initial_state(self) -> dict[str, jax.Array]:
        """Every state at zero."""
        with settings():
            return {s.path: zeros_of(s.type) for s in self._program.binding.states}

    def __call__(
        self, *inputs: Any, state: Flat | None = None, generics: Flat | None = None, **named: Any
    ) -> Any:
        return self.apply(self._parameters, *inputs, state=state, generics=generics, **named)

    def apply(
        self,
        params: Flat,
        *inputs: Any,
        state: Flat | None = None,
        generics: Flat | None = None,
        **named: Any,
    ) -> Any:
        """The entry on other parameters: differentiable by `jax.grad`, usable under `jax.jit`.

        There `exact` numerics runs the bodies too, but XLA may skip a rounding between two
        operations unless the outer `jax.jit` has `compiler_options` that forbid it.
        """

        program = self._program
        arrays = same_parameters(self._parameters, params)
        traced = _traced((arrays, inputs, state, named))
        how = self._how
        if traced:
            how = replace(how, donate=False, whole=True, trainable=True, traced=True)
        with settings():
            checked = program.read(
                self.name, program.signature(self.name).together(inputs, named), generics
            )
            loaded = program.loaded(self.name, how, checked)
            callee = loaded.code.callee
            tree = self._tree(loaded, params, arrays) if callee.takes_block else None
            given = self._state(state) if callee.takes_state else None
            result, after = program.call(self.name, loaded, checked, tree, given)
            kinds = callee.function.result_types
            made = outside(kinds[0], result) if kinds else None
        if not self._has_state:
            return made
        new = program.trees.flat_states(after) if callee.writes else dict(state or {})
        return made, new

    @property
    def _has_state(self) -> bool:
        """Whether the entry reads or writes state at all."""
        return bool(self._code.callee.takes_state)

    @property
    def _code(self) -> Any:
        return self._program.code(self.name, self._how)

    def _tree(self, loaded: Loaded, params: Flat, arrays: Flat) -> Any:
        """The parameters as the code takes them; its own are put together once."""
        if params is not self._parameters:
            return self._program.params(loaded, arrays.get)
        key = loaded.code.stacked, loaded.code.plan.kept
        if key not in self._trees:
            self._trees[key] = self._program.params(loaded, arrays.get)
        return self._trees[key]

    def _state(self, state: Flat | None) -> Any:
        known = {s.path: s.type for s in self._program.binding.states}
        values = dict(state or {})
        unknown = [path for path in values if path not in known]
        if unknown:
            raise InputError(f"there is no state `{unknown[0]}`")
        return self._program.trees.states(
            lambda path: values[path] if path in values else zeros_of(known[path])
        )

    def generated_source(self, generics: Flat | None = None) -> str:
        """The Python module that runs the entry."""
        from linnet.jax.runtime.model import source_of

        return source_of(self._program, self.name, generics, self._how)


def _traced(values: Any) -> bool:
    """Whether any of the values is being traced (under `jax.jit` or `jax.grad`)."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def same_parameters(known: Flat, given: Flat) -> dict[str, Any]:
    """`given`, which has to have the paths, shapes and dtypes of `known`."""
    missing = [path for path in known if path not in given]
    extra = [path for path in given if path not in known]
    if missing or extra:
        what = f"lack `{missing[0]}`" if missing else f"have no `{extra[0]}`"
        raise InputError(f"the parameters {what}")
    arrays = {}
    for path, wanted in known.items():
        value = given[path]
        array = value if hasattr(value, "dtype") and hasattr(value, "shape") else jnp.asarray(value)
        if tuple(array.shape) != tuple(wanted.shape) or array.dtype != wanted.dtype:
            raise InputError(
                f"the parameter `{path}` is {wanted.dtype}{list(wanted.shape)}, not "
                f"{array.dtype}{list(array.shape)}"
            )
        arrays[path] = value
    return arrays
