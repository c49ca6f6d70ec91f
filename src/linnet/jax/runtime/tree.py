"""A model's arrays as nested named tuples, which is how generated code takes them.

JAX flattens and compares named tuples fast, and one set of types serves every entry of a model.
"""

from __future__ import annotations

import re
from collections import Counter, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from linnet.backends.names import attribute
from linnet.jax.emit.blocks import has_states
from linnet.jax.emit.names import field
from linnet.jax.ready import Kept
from linnet.passes import Binding, Instance, ParamInfo

Find = Callable[[str], Any]
Flat = Mapping[str, Any]
# By the paths of blocks: fields beside the parameters, and what makes them of the block.
Makers = Mapping[str, Sequence[tuple[str, Callable[..., Any]]]]


_NONE: Makers = MappingProxyType({})


@cache
def _type(block: str, states: bool, fields: tuple[str, ...]) -> Any:
    """The same for every model: JAX compiles a function for each type of tree that it is given."""
    name = attribute(block.rpartition("::")[2])  # a block may be called `class`
    return namedtuple(name + "State" * states, fields)


class Trees:
    """Builds the trees of one binding, and takes them apart. Arrays of blocks in `stacked` (by
    declaring block and name) are one block whose arrays have a first axis more."""

    def __init__(self, binding: Binding, stacked: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.root, self.stacked = binding.root, stacked

    def params(self, find: Find, makers: Makers = _NONE) -> Any:
        """The parameters, and what is made of them; `find` gives the array at a path, None where
        an optional is absent."""
        return None if self.root is None else self._params(self.root, "", find, makers)

    def states(self, find: Find) -> Any:
        return None if self.root is None else self._states(self.root, "", find)

    def flat_states(self, tree: Any) -> dict[str, Any]:
        """A tree of states as arrays by path."""
        found: dict[str, Any] = {}
        if self.root is not None:
            self._collect(self.root, "", tree, found)
        return found

    def like(self, tree: Any, flat: Flat) -> Any:
        """A tree of states of the same types as `tree`, with other arrays."""
        made = self.states(flat.get)
        return jax.tree.unflatten(jax.tree.structure(tree), jax.tree.leaves(made))

    def _params(self, instance: Instance, prefix: str, find: Find, makers: Makers) -> Any:
        values: dict[str, Any] = {}
        for name, member in instance.members.items():
            if isinstance(member, ParamInfo):
                values[field(name)] = find(prefix + name)
        for name, child in instance.children.items():
            values[field(name)] = self._param_child(instance, name, child, prefix, find, makers)
        block = _type(instance.block, False, tuple(values))(**values)
        made = {name: make(block) for name, make in makers.get(prefix[:-1], ())}
        if not made:
            return block
        return _type(instance.block, False, (*values, *made))(**values, **made)

    def _param_child(
        self, instance: Instance, name: str, child: Instance | tuple[Instance, ...], prefix: str,
        find: Find, makers: Makers,
    ) -> Any:  # fmt: skip
        if isinstance(child, tuple):
            starts = (f"{prefix}{name}.{k}." for k in range(len(child)))
            parts = [self._params(c, s, find, makers) for c, s in zip(child, starts, strict=True)]
            return stack(parts) if (instance.block, name) in self.stacked else tuple(parts)
        inner = f"{prefix}{name}."
        optional = name in instance.optional_children
        if optional and all(find(inner + p.path) is None for p in child.params):
            return None
        return self._params(child, inner, find, makers)

    def _states(self, instance: Instance, prefix: str, find: Find) -> Any:
        values: dict[str, Any] = {}
        for name, member in instance.members.items():
            if not isinstance(member, ParamInfo):
                values[field(name)] = find(prefix + name)
        for name, child in instance.children.items():
            if not has_states(child):
                continue
            if isinstance(child, tuple):
                parts = [self._states(c, f"{prefix}{name}.{k}.", find) for k, c in enumerate(child)]
                stacked = (instance.block, name) in self.stacked
                values[field(name)] = stack(parts) if stacked else tuple(parts)
            else:
                values[field(name)] = self._states(child, f"{prefix}{name}.", find)
        return _type(instance.block, True, tuple(values))(**values)

    def _collect(self, instance: Instance, prefix: str, tree: Any, found: dict[str, Any]) -> None:
        for name, member in instance.members.items():
            if not isinstance(member, ParamInfo):
                found[prefix + name] = getattr(tree, field(name))
        for name, child in instance.children.items():
            if not has_states(child):
                continue
            below = getattr(tree, field(name))
            if isinstance(child, tuple):
                if (instance.block, name) in self.stacked:
                    below = unstack(below, len(child))
                for k, c in enumerate(child):
                    self._collect(c, f"{prefix}{name}.{k}.", below[k], found)
            else:
                self._collect(child, f"{prefix}{name}.", below, found)


def stack(parts: list[Any]) -> Any:
    """Equal trees as one, along a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)


def unstack(tree: Any, count: int) -> list[Any]:
    return [jax.tree.map(lambda leaf: leaf[k], tree) for k in range(count)]  # noqa: B023


def stackable(binding: Binding, present: frozenset[str]) -> frozenset[tuple[str, str]]:
    """The arrays of blocks whose elements, wherever they stand, have the same parameters."""
    good: dict[tuple[str, str], bool] = {}
    if binding.root is not None:
        _look(binding.root, "", present, good)
    return frozenset(key for key, fits in good.items() if fits)


def _look(
    instance: Instance, prefix: str, present: frozenset[str], good: dict[tuple[str, str], bool]
) -> None:
    for name, child in instance.children.items():
        if not isinstance(child, tuple):
            _look(child, f"{prefix}{name}.", present, good)
            continue
        starts = [f"{prefix}{name}.{k}." for k in range(len(child))]
        held = {
            tuple(p.path for p in c.params if start + p.path in present)
            for c, start in zip(child, starts, strict=True)
        }
        key = (instance.block, name)
        some = bool(child) and bool(child[0].params or child[0].states)
        good[key] = good.get(key, True) and some and len(held) == 1
        for c, start in zip(child, starts, strict=True):
            _look(c, start, present, good)


def repeated(root: Instance | None) -> int:
    """How many elements the arrays have in all that one declaration stands for, at the most."""
    counts: Counter[tuple[str, str]] = Counter()
    waiting = [] if root is None else [root]
    while waiting:
        instance = waiting.pop()
        for name, child in instance.children.items():
            several = child if isinstance(child, tuple) else (child,)
            waiting += several
            if isinstance(child, tuple):
                counts[instance.block, name] += len(child)
    return max(counts.values(), default=0)


def everywhere(binding: Binding, kept: Kept) -> bool:
    """Whether all elements of the arrays that its blocks stand in have the field: what is stacked
    has to be alike."""
    number = re.compile(r"(?<=\.)\d+(?=\.|$)")
    patterns = {number.sub("*", path) for path in kept.paths}
    return all(path in kept.paths for path in _blocks(binding) if number.sub("*", path) in patterns)


def _blocks(binding: Binding) -> Iterator[str]:
    """The paths of all blocks below the root."""
    waiting = [("", binding.root)] if binding.root is not None else []
    while waiting:
        prefix, instance = waiting.pop()
        yield prefix[:-1]
        for name, child in instance.children.items():
            if not isinstance(child, tuple):
                waiting.append((f"{prefix}{name}.", child))
                continue
            waiting += [(f"{prefix}{name}.{k}.", c) for k, c in enumerate(child)]
