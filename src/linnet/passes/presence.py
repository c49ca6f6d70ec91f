"""What of a bound model is there: which optional parameters and child blocks a checkpoint has.

A `Node` is a place in the instance tree together with what is absent below it; equal nodes lower
to equal code, which is how 36 layers alike are found to be alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from linnet.diagnostics import InternalError
from linnet.passes.bound import Binding, Instance, ParamInfo

# For each step below a node: None when it is absent itself, else what is absent below it.
Absent = frozenset[tuple[str | int, "Absent | None"]]

NOTHING: Absent = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """An instance and what is absent below it."""

    instance: Instance
    absent: Absent

    def has(self, name: str) -> bool:
        """Whether the optional parameter or child block is there."""
        return (name, None) not in self.absent

    def child(self, name: str) -> Node:
        child = self.instance.children[name]
        if isinstance(child, tuple):
            raise InternalError("passes.presence", f"`{name}` is an array of blocks")
        return Node(child, self._below(name))

    def elements(self, name: str) -> tuple[Node, ...]:
        """The nodes of an array of child blocks."""
        children = self.instance.children[name]
        if not isinstance(children, tuple):
            raise InternalError("passes.presence", f"`{name}` is no array of blocks")
        masks = {step: below for step, below in self._below(name) if below is not None}
        return tuple(Node(c, masks.get(i, NOTHING)) for i, c in enumerate(children))

    def walk(self, steps: tuple[str | int, ...]) -> Node:
        """The block at the end of `steps`, where each array's name is followed by a number."""
        node, at = self, 0
        while at < len(steps):
            name = str(steps[at])
            if isinstance(node.instance.children[name], tuple):
                node = node.elements(name)[int(steps[at + 1])]
                at += 2
            else:
                node, at = node.child(name), at + 1
        return node

    def _below(self, name: str) -> Absent:
        return next((below for step, below in self.absent if step == name and below), NOTHING)


def root_node(binding: Binding, present: frozenset[str] | None) -> Node | None:
    """The root with what `present`, the paths of the bound parameters, leaves out (None: nothing).

    An optional child block is absent when it has parameters and none of them is present.
    """
    if binding.root is None:
        return None
    if present is None:
        return Node(binding.root, NOTHING)
    return Node(binding.root, _absent(binding.root, "", present))


def _absent(instance: Instance, prefix: str, present: frozenset[str]) -> Absent:
    if not any(p.optional for p in instance.params):
        return NOTHING
    found: set[tuple[str | int, Absent | None]] = set()
    for name, member in instance.members.items():
        if isinstance(member, ParamInfo) and member.optional and prefix + name not in present:
            found.add((name, None))
    for name, child in instance.children.items():
        path = f"{prefix}{name}."
        if isinstance(child, tuple):
            below = _absent_elements(child, path, present)
        elif name in instance.optional_children and _is_missing(child, path, present):
            found.add((name, None))
            continue
        else:
            below = _absent(child, path, present)
        if below:
            found.add((name, below))
    return frozenset(found)


def _absent_elements(children: tuple[Instance, ...], path: str, present: frozenset[str]) -> Absent:
    masks = ((i, _absent(child, f"{path}{i}.", present)) for i, child in enumerate(children))
    return frozenset((i, mask) for i, mask in masks if mask)


def _is_missing(child: Instance, path: str, present: frozenset[str]) -> bool:
    return bool(child.params) and not any(path + p.path in present for p in child.params)
