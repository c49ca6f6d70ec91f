"""Parameters that lie in one storage, for generated code that reads them as one tensor.

The storage is what holds the values: a parameter stays the `nn.Parameter` it was, at its own path,
and its data is a view. What replaces a parameter, or its data, gives it another place; `Layout.lay`
sees that before a call and makes a new storage from what the parameters hold then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from linnet.backends.names import attribute
from linnet.passes import Binding, Storage
from linnet.passes.storage import Joined
from linnet.torch.runtime.inputs import TORCH
from linnet.types import DType, TensorType

Find = Callable[[str], torch.Tensor | None]


class Layout:
    """Which parameters of one model lie together, and where."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.groups: dict[tuple[str, ...], Joined] = {}
        self._held: dict[tuple[str, ...], torch.Tensor] = {}
        self._params: list[torch.Tensor] = []
        self._places: list[int] = []

    def fits(self, found: Storage) -> bool:
        """Whether this layout was made for tensors that are tied and made like these."""
        return (self.storage.tied, self.storage.kinds) == (found.tied, found.kinds)

    def claim(self, groups: Iterable[Joined]) -> bool:
        """Notes what generated code reads as one; whether there is anything new."""
        before = len(self.groups)
        self.groups.update({joined.paths: joined for joined in groups})
        if len(self.groups) == before:
            return False
        self.storage = Storage(self.storage.tied, self.storage.kinds, tuple(self.groups.values()))
        return True

    def moved(self) -> bool:
        """Whether a parameter's data lies elsewhere than `lay` left it."""
        return [p.data_ptr() for p in self._params] != self._places

    def lay(self, find: Find, node: Any) -> None:
        """Puts every group in one storage, and the storages at their blocks' nodes."""
        self._params = []
        for paths, joined in self.groups.items():
            params = [p for path in paths if (p := find(path)) is not None]
            held = self._held.get(paths)
            if held is None or not _lies(held, params):
                with torch.inference_mode(False), torch.no_grad():
                    held = self._held[paths] = _together(params)
            self._params += params
            setattr(_at(node, joined.block), attribute(joined.name), held)
        self._places = [p.data_ptr() for p in self._params]


def storage_of(binding: Binding, find: Find, device: torch.device) -> Storage:
    """What a model's tensors allow: tied ones lie in one place only, and what is not a plain tensor
    of the program's dtype and shape on the model's device stays as it is."""
    first: dict[int, str] = {}
    tied: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for info in binding.params:
        tensor = find(info.path)
        if tensor is None:
            continue
        one = first.setdefault(id(tensor), info.path)
        if one != info.path:
            tied[info.path] = one
        if not _is_plain(tensor, info.type):
            kinds[info.path] = info.path
        elif tensor.device != device:
            kinds[info.path] = str(tensor.device)
    return Storage(tied, kinds)


def _is_plain(tensor: torch.Tensor, type_: TensorType) -> bool:
    assert isinstance(type_.dtype, DType)
    shape = tuple(dim.constant for dim in type_.dims)
    alike = tensor.dtype == TORCH[type_.dtype] and tuple(tensor.shape) == shape
    return alike and type(tensor.data) is torch.Tensor and tensor.layout == torch.strided


def _lies(held: torch.Tensor, params: list[torch.Tensor]) -> bool:
    row = 0
    for param in params:
        part = held[row : row + param.shape[0]]
        if param.data_ptr() != part.data_ptr() or param.stride() != part.stride():
            return False
        row += param.shape[0]
    return True


def _together(params: list[torch.Tensor]) -> torch.Tensor:
    """A new storage that holds the parameters, which are views of it from now on."""
    rows = sum(param.shape[0] for param in params)
    first = params[0].data
    held = torch.empty((rows, *first.shape[1:]), dtype=first.dtype, device=first.device)
    row = 0
    for param in params:
        part = held[row : row + param.shape[0]]
        part.copy_(param.data)
        param.data = part
        row += param.shape[0]
    return held


def _at(node: Any, path: str) -> Any:
    """The node of the block at a path."""
    for step in path.split(".") if path else ():
        node = node[int(step)] if step.isdigit() else getattr(node, attribute(step))
    return node
