"""What the copies of a model share, and what each holds alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from linnet.backends.checks import Bounds
from linnet.backends.signature import Signature, entry_named, frozen
from linnet.backends.source import block_args
from linnet.backends.turns import Turns
from linnet.ir import Function
from linnet.passes import Binding, Storage
from linnet.torch.runtime.code import EntryCode, Loaded, Settings, generate
from linnet.torch.runtime.joined import Layout
from linnet.torch.runtime.tree import Node
from linnet.types import GenericArg


class Shared:
    """What copies of a model have in common: the program, and the text generated so far."""

    def __init__(
        self, binding: Binding, present: frozenset[str], settings: Settings, default: str | None
    ) -> None:
        self.binding, self.present, self.settings, self.default = (
            binding,
            present,
            settings,
            default,
        )
        program = binding.program
        self.entries: dict[str, Function] = program.entries(binding.block)
        self.signatures: dict[str, Signature] = {}
        self.codes: dict[Any, EntryCode] = {}
        self.bounds = Bounds(binding)

    def __deepcopy__(self, memo: dict[int, Any]) -> Shared:
        return self

    def signature(self, name: str) -> Signature:
        function = entry_named(self.entries, name)
        if name not in self.signatures:
            self.signatures[name] = Signature(name, function, block_args(self.binding))
        return self.signatures[name]

    def code(
        self,
        name: str,
        device: str,
        sizes: Mapping[str, GenericArg] | None = None,
        storage: Storage | None = None,
    ) -> EntryCode:
        """An entry's code for parameters that may lie as `storage` says."""
        key = (name, device, frozen(sizes), _storage_key(storage))
        if key not in self.codes:
            settings = Settings(
                self.settings.numerics, self.settings.compile, self.settings.trainable, device
            )
            title = f"{self.binding.block or self.binding.program.root}"
            self.codes[key] = generate(
                self.binding, name, settings, self.present, sizes, title, storage
            )
        return self.codes[key]


def _storage_key(storage: Storage | None) -> Any:
    if storage is None:
        return None
    return frozenset(storage.tied.items()), frozenset(storage.kinds.items()), storage.groups


class Live:
    """What belongs to one model object alone and is made anew in a copy."""

    def __init__(self, has_state: bool, broken: str | None = None) -> None:
        self.turns = Turns(has_state, broken)
        self.node: Node | None = None
        self.epoch_seen = -1
        self.loaded: dict[Any, Loaded] = {}
        self.pinned: frozenset[int] | None = None
        self.weights: tuple[torch.Tensor, ...] = ()
        self.layout: Layout | None = None
        self.layout_epoch = -1

    def __deepcopy__(self, memo: dict[int, Any]) -> Live:
        turns = self.turns
        return Live(turns.has_state, turns.broken)  # as the states are, which are copied
