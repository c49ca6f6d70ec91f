"""The manifest of a bound program: its parameters, states and arrays as plain data."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.passes.bound import Binding, Instance, ParamInfo, StateInfo, size_of
from linnet.types import DType, TensorType
from linnet.weights.manifest import Manifest, ParamSpec, StateSpec


def manifest_of(binding: Binding) -> Manifest:
    """What `plan_load` needs to know of a binding; order as in the source."""
    if binding.root is None:
        return Manifest(())
    arrays: dict[str, int] = {}
    facts: dict[str, tuple[bool, str]] = {}
    for path, optional, within in _members(binding.root, "", "", arrays):
        facts[path] = (optional, within)
    params = tuple(_param(info, *facts[info.path]) for info in binding.params)
    return Manifest(params, tuple(map(_state, binding.states)), arrays)


def _members(
    instance: Instance, prefix: str, within: str, arrays: dict[str, int]
) -> Iterator[tuple[str, bool, str]]:
    """Each parameter's path, whether itself optional, and its innermost optional sub."""
    for name, member in instance.members.items():
        if isinstance(member, ParamInfo):
            yield prefix + name, member.optional, within
    for name, child in instance.children.items():
        path = prefix + name
        inner = path if name in instance.optional_children else within
        if isinstance(child, tuple):
            arrays[path] = len(child)
            for index, element in enumerate(child):
                yield from _members(element, f"{path}.{index}.", inner, arrays)
        else:
            yield from _members(child, path + ".", inner, arrays)


def _param(info: ParamInfo, optional: bool, within: str) -> ParamSpec:
    shape, dtype = _concrete(info.type)
    return ParamSpec(info.path, shape, dtype, optional, within, info.kind == "param")


def _state(info: StateInfo) -> StateSpec:
    return StateSpec(info.path, *_concrete(info.type))


def _concrete(tensor: TensorType) -> tuple[tuple[int, ...], str]:
    dtype = tensor.dtype
    assert isinstance(dtype, DType)  # `bind` leaves no dtype variable
    return tuple(size_of(dim) for dim in tensor.dims), dtype.value
