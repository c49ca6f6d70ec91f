"""The named tuples that hold a block's parameters and its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linnet.backends.emit.types import class_lines
from linnet.backends.names import Names
from linnet.jax.emit.names import field
from linnet.passes import Binding, Instance, ParamInfo


class BlockTypes:
    """One pair of types for each block declaration below the root; one for the states only where
    there are any. `kept` names further fields of a block, for what is made of its parameters once.
    """

    def __init__(
        self, binding: Binding, names: Names, kept: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._kept = kept or {}
        self.params: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.sections: list[list[str]] = []  # the lines of each class
        self._names = names
        if binding.root is not None:
            self._declare(binding.root)

    def _declare(self, instance: Instance) -> None:
        if instance.block in self.params:
            return
        short = instance.block.rpartition("::")[2]
        self.params[instance.block] = self._names.fresh(short)
        for child in instance.children.values():
            for each in child[:1] if isinstance(child, tuple) else (child,):
                self._declare(each)
        self.sections.append(class_lines(self.params[instance.block], self._param_fields(instance)))
        if instance.states:
            name = self._names.fresh(f"{short}State")
            self.states[instance.block] = name
            self.sections.append(class_lines(name, self._state_fields(instance)))

    def _param_fields(self, instance: Instance) -> list[str]:
        fields = []
        for name, member in instance.members.items():
            if isinstance(member, ParamInfo):
                fields.append(f"{field(name)}: jax.Array{' | None' * member.optional}")
        for name, child in instance.children.items():
            fields.append(f"{field(name)}: {self._kind(child, self.params)}")
        fields += [f"{name}: Any = None" for name in self._kept.get(instance.block, ())]
        return fields

    def _state_fields(self, instance: Instance) -> list[str]:
        fields = []
        for name, member in instance.members.items():
            if not isinstance(member, ParamInfo):
                fields.append(f"{field(name)}: jax.Array")
        for name, child in instance.children.items():
            if has_states(child):
                fields.append(f"{field(name)}: {self._kind(child, self.states)}")
        return fields

    @staticmethod
    def _kind(child: Instance | tuple[Instance, ...], names: dict[str, str]) -> str:
        if not isinstance(child, tuple):
            return names.get(child.block, "None")
        return f"tuple[{names.get(child[0].block, 'None')}, ...]" if child else "tuple[()]"


def has_states(child: Instance | tuple[Instance, ...]) -> bool:
    if isinstance(child, tuple):
        return bool(child) and bool(child[0].states)
    return bool(child.states)
