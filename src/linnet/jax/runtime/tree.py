"""A model's arrays as nested named tuples, which is how generated code takes them.

JAX flattens and compares named tuples fast, and one set of types serves every entry of a model.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from linnet.jax.emit.blocks import has_states
from linnet.jax.emit.names import field
from linnet.passes import Binding, Instance, ParamInfo

Find = Callable[[str], Any]


class Trees:
    """Builds the trees of one binding, and takes them apart."""

    def __init__(self, binding: Binding) -> None:
        self.root = binding.root
        self._types: dict[tuple[str, bool, tuple[str, ...]], Any] = {}

    def params(self, find: Find) -> Any:
        """The parameters; `find` gives the array at a path, None where an optional is absent."""
        return None if self.root is None else self._params(self.root, "", find)

    def states(self, find: Find) -> Any:
        return None if self.root is None else self._states(self.root, "", find)

    def flat_states(self, tree: Any) -> dict[str, Any]:
        """A tree of states as arrays by path."""
        found: dict[str, Any] = {}
        if self.root is not None:
            self._collect(self.root, "", tree, found)
        return found

    def _type(self, block: str, states: bool, fields: tuple[str, ...]) -> Any:
        key = (block, states, fields)
        if key not in self._types:
            name = block.rpartition("::")[2] + "State" * states
            self._types[key] = namedtuple(name, fields)  # noqa: PYI024
        return self._types[key]

    def _params(self, instance: Instance, prefix: str, find: Find) -> Any:
        values: dict[str, Any] = {}
        for name, member in instance.members.items():
            if isinstance(member, ParamInfo):
                values[field(name)] = find(prefix + name)
        for name, child in instance.children.items():
            values[field(name)] = self._param_child(instance, name, child, prefix, find)
        return self._type(instance.block, False, tuple(values))(**values)

    def _param_child(
        self, instance: Instance, name: str, child: Instance | tuple[Instance, ...], prefix: str,
        find: Find,
    ) -> Any:  # fmt: skip
        if isinstance(child, tuple):
            return tuple(self._params(c, f"{prefix}{name}.{k}.", find) for k, c in enumerate(child))
        inner = f"{prefix}{name}."
        if name in instance.optional_children:
            if all(find(inner + p.path) is None for p in child.params):
                return None
        return self._params(child, inner, find)

    def _states(self, instance: Instance, prefix: str, find: Find) -> Any:
        values: dict[str, Any] = {}
        for name, member in instance.members.items():
            if not isinstance(member, ParamInfo):
                values[field(name)] = find(prefix + name)
        for name, child in instance.children.items():
            if not has_states(child):
                continue
            if isinstance(child, tuple):
                values[field(name)] = tuple(
                    self._states(c, f"{prefix}{name}.{k}.", find) for k, c in enumerate(child)
                )
            else:
                values[field(name)] = self._states(child, f"{prefix}{name}.", find)
        return self._type(instance.block, True, tuple(values))(**values)

    def _collect(self, instance: Instance, prefix: str, tree: Any, found: dict[str, Any]) -> None:
        for name, member in instance.members.items():
            if not isinstance(member, ParamInfo):
                found[prefix + name] = getattr(tree, field(name))
        for name, child in instance.children.items():
            if not has_states(child):
                continue
            below = getattr(tree, field(name))
            if isinstance(child, tuple):
                for k, c in enumerate(child):
                    self._collect(c, f"{prefix}{name}.{k}.", below[k], found)
            else:
                self._collect(child, f"{prefix}{name}.", below, found)


Flat = Mapping[str, Any]
