"""Parameters and states as callers give them: arrays by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from linnet.backends.errors import InputError
from linnet.backends.inputs import numpy_dtype
from linnet.diagnostics.escape import escape_text
from linnet.passes import Binding
from linnet.types import DType

Flat = Mapping[str, Any]


@jax.tree_util.register_pytree_with_keys_class
class Parameters(Mapping[str, Any]):
    """Arrays by path, to read. To JAX it is a tree, as a dict is: `jax.grad` gives another."""

    def __init__(self, arrays: Flat) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, path: str) -> Any:
        return self._arrays[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __or__(self, other: Flat) -> dict[str, Any]:
        return {**self._arrays, **other}

    def __ror__(self, other: Flat) -> dict[str, Any]:
        return {**other, **self._arrays}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arrays!r})"

    def __setitem__(self, path: str, value: Any) -> None:
        raise _read_only()

    def __delitem__(self, path: str) -> None:
        raise _read_only()

    def tree_flatten_with_keys(self) -> Any:
        paths = tuple(sorted(self._arrays))
        return [(jax.tree_util.DictKey(p), self._arrays[p]) for p in paths], paths

    @classmethod
    def tree_unflatten(cls, paths: tuple[str, ...], arrays: Any) -> Parameters:
        return cls(dict(zip(paths, arrays, strict=True)))


def _read_only() -> TypeError:
    return TypeError(
        "a model's parameters are changed by assigning all of them: "
        "model.parameters = {**model.parameters, path: array}"
    )


def checked_state(binding: Binding, given: Flat | None) -> dict[str, Any]:
    """The states a caller gives, which have to be what the program declares."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"state is a dict of arrays by path, not a {type(given).__name__}")
    kinds = {s.path: s.type for s in binding.states}
    for path, value in (given or {}).items():
        if path not in kinds:
            raise InputError(f"there is no state `{escape_text(str(path), 80)}`")
        type_ = kinds[path]
        assert isinstance(type_.dtype, DType)
        shape = tuple(d.constant or 0 for d in type_.dims)
        _same_array(f"the state `{path}`", shape, np.dtype(numpy_dtype(type_.dtype)), value)
        if is_gone(value):
            raise InputError(
                f"the memory of the state `{path}` was taken over by an earlier call: give the "
                "state that this call returned"
            )
    missing = [path for path in kinds if given is not None and path not in given]
    if missing:
        raise InputError(
            f"the state lacks {_listed(missing)}: give every state, or leave out state="
        )
    return dict(given or {})


def _listed(paths: list[str]) -> str:
    """A few of the paths, and how many more there are."""
    shown = ", ".join(f"`{path}`" for path in paths[:4])
    return shown if len(paths) <= 4 else f"{shown} and {len(paths) - 4} more"


def apart(held: Flat, inputs: Any, arrays: Flat) -> dict[str, Any]:
    """The states, each in memory of its own: a call that takes it over takes no other array."""
    taken = {_memory(leaf) for leaf in jax.tree.leaves(inputs)}
    parameters = {id(array) for array in arrays.values()}
    found = {}
    for path, value in held.items():
        # A NumPy array may lie where the device reads it, and stays its owner's.
        mine = isinstance(value, jax.Array) and id(value) not in parameters
        found[path] = value if mine and _memory(value) not in taken else jnp.array(value, copy=True)
        taken.add(_memory(found[path]))
    return found


def _memory(value: Any) -> int:
    """What two arrays that share memory have in common."""
    if isinstance(value, jax.Array) and value.is_fully_addressable and len(value.devices()) == 1:
        return int(value.unsafe_buffer_pointer())
    return id(value)


def is_gone(value: Any) -> bool:
    """Whether it is an array whose memory a call took over."""
    concrete = isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
    return concrete and value.is_deleted()


def same_parameters(known: Flat, given: Flat) -> dict[str, Any]:
    """`given`, which has to have the paths, shapes and dtypes of `known`."""
    if not isinstance(given, Mapping):
        raise InputError(f"parameters are a dict of arrays by path, not a {type(given).__name__}")
    missing = [path for path in known if path not in given]
    extra = [path for path in given if path not in known]
    if missing or extra:
        what = f"lack `{missing[0]}`" if missing else f"have no `{escape_text(str(extra[0]), 80)}`"
        raise InputError(f"the parameters {what}")
    for path, wanted in known.items():
        _same_array(f"the parameter `{path}`", tuple(wanted.shape), wanted.dtype, given[path])
    return dict(given)


def _same_array(what: str, shape: tuple[int, ...], dtype: Any, value: Any) -> None:
    """Raises `InputError` where the value is no array of the shape and dtype."""
    wanted = f"{what} is {dtype}{list(shape)}"
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        raise InputError(f"{wanted}, not a {type(value).__name__}: give an array")
    if tuple(value.shape) != shape or value.dtype != dtype:
        raise InputError(f"{wanted}, not {value.dtype}{list(value.shape)}")
