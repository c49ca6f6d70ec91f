"""A model's tensors: once as `nn.Module`s, for PyTorch's tools, and once as plain objects.

Generated code reads `block.layers[3].mlp.up.weight` thousands of times a call, and looking a name
up in an `nn.Module` is slow and knows names of its own (`training`, `forward`). So it works on
`Node`s, whose attributes are the tensors themselves.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Mapping
from typing import Any

import torch

from linnet.backends.names import attribute
from linnet.passes import Instance

Tensors = Mapping[str, torch.Tensor | None]


class Node:
    """A block's members as attributes: tensors, child nodes, lists of them, None where absent."""

    def __init__(self, path: str = "") -> None:
        self.__dict__["_path"] = path

    def __repr__(self) -> str:
        return f"<block {self.__dict__['_path'] or 'root'}>"


def build_node(instance: Instance, prefix: str, find: Callable[[str], torch.Tensor | None]) -> Node:
    """The node of a block; `find` gives the tensor at a path, None for an absent optional one."""
    node = Node(prefix.rstrip("."))
    for name in instance.members:
        setattr(node, attribute(name), find(prefix + name))
    for name, child in instance.children.items():
        setattr(node, attribute(name), _child(instance, name, child, prefix, find))
    return node


def _child(
    instance: Instance, name: str, child: Instance | tuple[Instance, ...], prefix: str,
    find: Callable[[str], torch.Tensor | None],
) -> Any:  # fmt: skip
    if isinstance(child, tuple):
        return [build_node(c, f"{prefix}{name}.{k}.", find) for k, c in enumerate(child)]
    inner = f"{prefix}{name}."
    optional = name in instance.optional_children
    if optional and all(find(inner + p.path) is None for p in child.params):
        return None
    return build_node(child, inner, find)


class Epoch:
    """Counts what replaces a tensor of a module tree, so that its nodes are made anew."""

    def __init__(self) -> None:
        self.value = 0


class Container(torch.nn.Module):
    """A block, or an array of them, holding tensors under their source names."""

    _epoch: Epoch

    def __init__(self, epoch: Epoch) -> None:
        self.__dict__["_epoch"] = epoch
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training" and isinstance(value, bool):
            self.__dict__[name] = value  # PyTorch's own, even where a parameter is called so
            return
        self.__dict__["_epoch"].value += 1
        if name in self.__dict__.get("_parameters", ()) and isinstance(
            value, torch.nn.Parameter | None
        ):
            self._parameters[name] = value
        elif name in self.__dict__.get("_buffers", ()) and isinstance(value, torch.Tensor | None):
            self._buffers[name] = value
        else:
            super().__setattr__(name, value)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.__dict__["_epoch"].value += 1
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]


def place(root: torch.nn.Module, epoch: Epoch, path: str, tensor: Any, kind: str) -> None:
    """Puts a tensor at `path` below `root`, whatever the names on the way are."""
    *steps, last = path.split(".")
    module = root
    for step in steps:
        child = module._modules.get(step)
        if child is None:
            child = module._modules[step] = Container(epoch)
        module = child
    if kind == "param":
        module._parameters[last] = tensor
    else:
        module._buffers[last] = tensor


def find_tensor(root: torch.nn.Module, path: str) -> torch.Tensor | None:
    *steps, last = path.split(".")
    module: torch.nn.Module | None = root
    for step in steps:
        module = module._modules.get(step) if module is not None else None
    if module is None:
        return None
    found = module._parameters.get(last)
    return found if found is not None else module._buffers.get(last)


def lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros whose memory the system gives when it is first written, on a CPU (`torch.zeros` writes
    it all): a cache costs what has been filled of it."""
    nbytes = math.prod(shape) * dtype.itemsize
    if device.type != "cpu" or nbytes < MAPPED_BYTES:
        return torch.zeros(shape, dtype=dtype, device=device)
    memory = mmap.mmap(-1, nbytes, **_PRIVATE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # or a position of a head would take 2 MiB
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype).reshape(shape)


MAPPED_BYTES = 1 << 20
_PRIVATE: dict[str, int] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
)
