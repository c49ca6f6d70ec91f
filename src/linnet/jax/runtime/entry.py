"""One entry as a pure function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax

from linnet.backends.errors import InputError
from linnet.backends.inputs import Checked
from linnet.diagnostics.escape import escape_text
from linnet.jax.runtime.arrays import settings, zeros_of
from linnet.jax.runtime.failures import refusals
from linnet.jax.runtime.given import Flat, apart, checked_state, same_parameters
from linnet.jax.runtime.results import outside

if TYPE_CHECKING:
    from linnet.jax.runtime.code import Loaded
    from linnet.jax.runtime.model import Program


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
            together = program.signature(self.name).together(inputs, named)
            checked = program.read(self.name, together, generics)
            held = checked_state(program.binding, state)
            loaded = program.loaded(self.name, how, checked)
            callee = loaded.code.callee
            given = self._state(held, loaded, checked, arrays)
            with _explained(loaded), refusals(program.signature(self.name)):
                tree = self._tree(loaded, params, arrays) if callee.takes_block else None
                result, after = program.call(self.name, loaded, checked, tree, given)
            kinds = callee.function.result_types
            made = outside(kinds[0], result) if kinds else None
        if not callee.takes_state:
            return made
        return made, program.trees.flat_states(after if callee.writes else given)

    def _tree(self, loaded: Loaded, params: Flat, arrays: Flat) -> Any:
        """The parameters as the code takes them; its own are put together once."""
        if params is not self._parameters:
            return self._program.params(loaded, arrays.get)
        key = loaded.code.stacked, loaded.code.plan.kept
        if key not in self._trees:
            with jax.ensure_compile_time_eval():  # it outlives a program that is being traced
                self._trees[key] = self._program.params(loaded, arrays.get)
        return self._trees[key]

    def _state(self, held: Flat, loaded: Loaded, checked: Checked, arrays: Flat) -> Any:
        """The states as the code takes them, all zero where `held` has none."""
        callee, program = loaded.code.callee, self._program
        if not callee.takes_state:
            return None
        if loaded.code.settings.donate and callee.writes:
            held = apart(held, checked.values, arrays)
        kinds = {s.path: s.type for s in program.binding.states}
        return program.trees.states(
            lambda path: held[path] if path in held else zeros_of(kinds[path])
        )

    def generated_source(self, generics: Flat | None = None) -> str:
        """The Python module that runs the entry."""
        from linnet.jax.runtime.model import source_of

        return source_of(self._program, self.name, generics, self._how)


@contextmanager
def _explained(loaded: Loaded) -> Iterator[None]:
    """JAX's refusal of forward mode also says which ops' own gradients stand in its way."""
    try:
        yield
    except TypeError as error:
        if "forward-mode" in str(error):
            plan = loaded.code.plan
            own = {plan.origins.get(n, n) for n, f in plan.functions.items() if f.grad is not None}
            named = ", ".join(f"`{name.rpartition('::')[2]}`" for name in sorted(own))
            error.add_note(
                f"the `grad` clause of {escape_text(named, 800)} is a reverse gradient alone: use "
                "jax.grad, jax.vjp or jax.jacrev, not forward mode"
            )
        raise


def _traced(values: Any) -> bool:
    """Whether any of the values is being traced (under `jax.jit` or `jax.grad`)."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))
