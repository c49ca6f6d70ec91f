"""Blocks as the evaluator meets them: a path, the block's declaration, its generic arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from linnet.diagnostics import InternalError
from linnet.ir.core import Block, Generic, GenericVar, Ref, SubVar
from linnet.ir.matching import generic_arg
from linnet.ir.semantics.model import EvaluationError, Tensor, integer
from linnet.types import GenericArg, Subst, TensorType


@dataclass(frozen=True, slots=True)
class Place:
    """One block of the model. `count` is set when it is an array, whose elements are `child(k)`."""

    blocks: Mapping[str, Block]
    path: tuple[str | int, ...]
    block: Block
    args: Mapping[GenericVar, GenericArg]
    count: int | None = None
    _children: dict[str | int, Place] = field(default_factory=dict, compare=False)

    @property
    def dotted(self) -> str:
        return ".".join(map(str, self.path))

    def child(self, step: str | int) -> Place:
        """The child block, array, or element of an array."""
        if step not in self._children:
            self._children[step] = self._make(step)
        return self._children[step]

    def _make(self, step: str | int) -> Place:
        path = (*self.path, step)
        if self.count is not None:
            if not isinstance(step, int) or not 0 <= step < self.count:
                raise EvaluationError(f"`{self.dotted}` has no element {step}")
            return Place(self.blocks, path, self.block, self.args)
        sub = self.block.subs.get(str(step))
        if sub is None:
            raise InternalError("ir.evaluate", f"`{self.block.name}` has no child block `{step}`")
        subst = Subst.of(self.args)
        block = self.blocks[sub.block]
        args = block_args(block, tuple(map(subst.arg, sub.args)))
        count = None if sub.count is None else integer(subst.dim(sub.count))
        return Place(self.blocks, path, block, args, count)

    def member(self, name: str) -> str:
        """The path of a parameter or state."""
        return ".".join(map(str, (*self.path, name)))

    def state_type(self, name: str) -> Tensor:
        """The concrete type of the state `name`."""
        type_ = Subst.of(self.args).type(self.block.members[name].type)
        if not isinstance(type_, TensorType):
            raise InternalError("ir.evaluate", f"state `{self.member(name)}` is {type_}")
        return Tensor.of(type_)


def block_args(block: Block, args: tuple[GenericArg, ...]) -> dict[GenericVar, GenericArg]:
    return {g.var: arg for g, arg in zip(block.generics, args, strict=True)}


def root_place(blocks: Mapping[str, Block], name: str, generics: Mapping[str, Any]) -> Place:
    """The block everything starts at, its generics given by name or defaulted."""
    block = blocks[name]
    args: dict[GenericVar, GenericArg] = {}
    for generic in block.generics:
        args[generic.var] = _given(block, generic, generics, args)
    return Place(blocks, (), block, args)


def _given(
    block: Block,
    generic: Generic,
    generics: Mapping[str, Any],
    before: Mapping[GenericVar, GenericArg],
) -> GenericArg:
    if generic.name in generics:
        return generic_arg(generic, generics[generic.name])
    if generic.default is None:
        raise EvaluationError(f"`{block.short_name}` does not get its `{generic.name}`")
    return Subst.of(before).arg(generic.default)


def resolve(ref: Ref, receiver: Place | None, subs: Mapping[SubVar, Place]) -> Place:
    """The block that `ref` leads to."""
    place = receiver if ref.root is None else subs[ref.root]
    if place is None:
        raise InternalError("ir.evaluate", f"`{ref}` is used outside a block")
    for step in ref.steps:
        place = place.child(step)
    return place
