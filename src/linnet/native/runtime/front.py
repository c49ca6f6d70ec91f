"""What a model object needs to know of its program, with the program itself left unread until
somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from linnet.backends.source import block_args, default_entry
from linnet.ir import Function, Param, Region, Value
from linnet.native.emit.blocks import paths
from linnet.passes import Binding, ParamInfo, StateInfo
from linnet.types import GenericArg
from linnet.weights.bound import manifest_of
from linnet.weights.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Facts:
    """A bound program without its functions' bodies: plain data that can be kept in a file."""

    title: str
    entries: Mapping[str, Function]
    block_args: Mapping[str, GenericArg]
    default: str | None
    params: tuple[ParamInfo, ...]
    states: tuple[StateInfo, ...]
    manifest: Manifest
    param_order: tuple[str, ...]  # paths in the order in which compiled code takes them
    state_order: tuple[str, ...]
    has_root: bool


def facts_of(binding: Binding, entry: str | None) -> Facts:
    """Raises `ValueError` where there is no such entry."""
    root = binding.root
    return Facts(
        title=str(binding.block or binding.program.root),
        entries={n: bare(f) for n, f in binding.program.entries(binding.block).items()},
        block_args=block_args(binding),
        default=default_entry(binding, entry),
        params=tuple(replace(info, span=None) for info in binding.params),
        states=tuple(replace(info, span=None) for info in binding.states),
        manifest=manifest_of(binding),
        param_order=() if root is None else tuple(paths(root, states=False)),
        state_order=() if root is None else tuple(paths(root, states=True)),
        has_root=root is not None,
    )


def bare(function: Function) -> Function:
    """A function's signature and result types, without its body."""
    params = tuple(
        Param(p.name, Value(p.value.type, p.value.name), p.default) for p in function.params
    )
    results = tuple(Value(value.type, value.name) for value in function.body.results)
    body = Region((), (), results)
    return replace(function, params=params, body=body, grad=None, span=None)


class Front:
    """A program's facts, and the program when it is asked for."""

    def __init__(self, facts: Facts, make: Callable[[], Binding], key: str | None = None) -> None:
        self.facts, self.key = facts, key
        self._make = make
        self._binding: Binding | None = None

    @property
    def binding(self) -> Binding:
        if self._binding is None:
            self._binding = self._make()
        return self._binding

    @property
    def is_read(self) -> bool:
        """Whether the front end has run."""
        return self._binding is not None


def front_of(binding: Binding, entry: str | None, key: str | None = None) -> Front:
    made = Front(facts_of(binding, entry), lambda: binding, key)
    made._binding = binding
    return made
