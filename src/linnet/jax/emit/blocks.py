"""The named tuples that hold a block's parameters and its states."""

from __future__ import annotations

from linnet.backends.names import Names
from linnet.jax.emit.names import field
from linnet.passes import Binding, Instance, ParamInfo


class BlockTypes:
    """One pair of types for each block declaration below the root; one for the states only where
    there are any."""

    def __init__(self, binding: Binding, names: Names) -> None:
        self.params: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self._lines: list[str] = []
        self._names = names
        if binding.root is not None:
            self._declare(binding.root)

    @property
    def names(self) -> set[str]:
        return {*self.params.values(), *self.states.values()}

    def lines(self) -> list[str]:
        return self._lines

    def _declare(self, instance: Instance) -> None:
        if instance.block in self.params:
            return
        short = instance.block.rpartition("::")[2]
        self.params[instance.block] = self._names.fresh(short)
        for child in instance.children.values():
            for each in child[:1] if isinstance(child, tuple) else (child,):
                self._declare(each)
        self._class(self.params[instance.block], self._param_fields(instance))
        if instance.states:
            name = self._names.fresh(f"{short}State")
            self.states[instance.block] = name
            self._class(name, self._state_fields(instance))

    def _class(self, name: str, fields: list[str]) -> None:
        self._lines += [f"class {name}(NamedTuple):"]
        self._lines += [f"    {line}" for line in fields] or ["    pass"]
        self._lines += ["", ""]

    def _param_fields(self, instance: Instance) -> list[str]:
        fields = []
        for name, member in instance.members.items():
            if isinstance(member, ParamInfo):
                fields.append(f"{field(name)}: jax.Array{' | None' * member.optional}")
        for name, child in instance.children.items():
            fields.append(f"{field(name)}: {self._kind(child, self.params)}")
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
