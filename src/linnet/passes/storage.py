"""Which parameters of a bound model lie side by side in one storage.

Each is in at most one, whatever function or entry asks, on every block that a function runs on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from linnet.ir import Ref
from linnet.passes.bound import Instance
from linnet.passes.module import Module, Note
from linnet.passes.places import Places, path_text

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Parameters that lie together, by path and in order, as `name` of the block at `block`."""

    paths: Group
    block: str
    name: str


@dataclass(frozen=True, slots=True)
class Storage:
    """How a model's parameters lie. `tied` names each path that shares its tensor with others by
    one of them; only parameters of one of `kinds` lie together; `groups` are joined already, by
    entries lowered before."""

    tied: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[Joined, ...] = ()


def holder(refs: Sequence[Ref]) -> Ref:
    """The innermost block that all these parameters lie in."""
    steps = refs[0].steps[:-1]
    while any(r.steps[: len(steps)] != steps or isinstance(r.steps[len(steps)], int) for r in refs):
        steps = steps[:-1]
    return Ref(refs[0].root, steps)


def storage_name(refs: Sequence[Ref], at: Ref) -> str:
    """What the parameters' storage is called, where nothing else is: `q_k_weight`."""
    paths = [[str(step) for step in ref.steps[len(at.steps) :]] for ref in refs]
    last = {path[-1] for path in paths}
    if len(last) == 1 and all(len(path) > 1 for path in paths):
        paths = [*(path[:-1] for path in paths), [paths[0][-1]]]
    return "_".join(step for path in paths for step in path)


class HasRefs(Protocol):
    """A product whose joined operands are the parameters `refs`."""

    @property
    def refs(self) -> tuple[Ref, ...]: ...


P = TypeVar("P", bound=HasRefs)


class Claims:
    """Who shares a storage with whom, over all blocks that functions run on."""

    def __init__(self, where: Places, storage: Storage, root: Instance | None) -> None:
        self.where, self.tied, self.kinds = where, storage.tied, storage.kinds
        self.owner: dict[str, Group] = {}
        self.used: dict[Group, Joined] = {}
        self.taken: list[tuple[str, tuple[Ref, ...], int]] = []
        self.names = frozenset() if root is None else _members(root)
        self.called: dict[tuple[str, str], Group] = {}
        for joined in storage.groups:
            self.claim(joined.paths)
            self.called[joined.block, joined.name] = joined.paths

    def claim(self, group: Group) -> None:
        self.owner.update(dict.fromkeys(map(self.one, group), tuple(map(self.one, group))))

    def one(self, path: str) -> str:
        return self.tied.get(path, path)

    def paths(self, function: str, ref: Ref) -> Group:
        """The parameter on each block that the function runs on."""
        return tuple(path_text(steps) for steps in self.where.of(function, ref))

    def groups(self, function: str, found: Sequence[P]) -> list[list[P]]:
        """The products among `found` that can be one, in the order in which they are stored."""
        alike: dict[tuple[tuple[Group | None, str], ...], list[P]] = {}
        for product in found:
            places = [p for ref in product.refs for p in self.paths(function, ref)]
            how = tuple((self.owner.get(self.one(p)), self.kinds.get(p, "")) for p in places)
            alike.setdefault(how, []).append(product)
        made = []
        for how, products in alike.items():
            if all(owner is None for owner, _ in how):
                group = self.new(function, products)
            else:
                group = self.known(function, products)
            if len(group) > 1:
                made.append(group)
        return made

    def new(self, function: str, products: Sequence[P]) -> list[P]:
        """Those of free parameters that are different tensors on all blocks."""
        kept: list[P] = []
        taken: set[str] = set()
        for product in products:
            mine = [self.one(p) for ref in product.refs for p in self.paths(function, ref)]
            if len(set(mine)) == len(mine) and taken.isdisjoint(mine):
                kept.append(product)
                taken.update(mine)
        return kept

    def known(self, function: str, products: Sequence[P]) -> list[P]:
        """All of them in their storage's order, where they are all of it on every block."""
        first = self.owner.get(self.one(self.paths(function, products[0].refs[0])[0]), ())
        at = {path: k for k, path in enumerate(first)}
        order = sorted(
            products, key=lambda p: at.get(self.one(self.paths(function, p.refs[0])[0]), 0)
        )
        for number in range(len(order[0].refs)):
            for group in self.stored(function, order, number):
                one = tuple(map(self.one, group))
                if self.owner.get(one[0]) != one:
                    return []
        return order

    def stored(self, function: str, products: Sequence[P], number: int) -> Iterator[Group]:
        """The paths that lie together, on each block: of the joined operand of that number."""
        yield from zip(*(self.paths(function, p.refs[number]) for p in products), strict=True)

    def take(self, function: str, products: Sequence[P]) -> list[tuple[Ref, str]]:
        """Notes that these are joined; for each joined operand the block that holds them and what
        they are called there."""
        names: list[tuple[Ref, str]] = []
        for number in range(len(products[0].refs)):
            refs = [p.refs[number] for p in products]
            at = holder(refs)
            blocks = self.paths(function, at)
            groups = list(self.stored(function, products, number))
            name = self.name(refs, at, dict(zip(blocks, groups, strict=True)))
            names.append((at, name))
            if number == 0:
                self.taken.append((function, tuple(refs), len(blocks)))
            for group, block in zip(groups, blocks, strict=True):
                self.claim(group)
                self.used[group] = Joined(group, block, name)
                self.called[block, name] = group
        return names

    def name(self, refs: Sequence[Ref], at: Ref, groups: Mapping[str, Group]) -> str:
        """A name that no member has, nor another storage of these blocks."""
        name = storage_name(refs, at)
        while name in self.names or any(
            self.called.get((block, name), group) != group for block, group in groups.items()
        ):
            name += "_"
        return name

    def notes(self, module: Module) -> Iterator[Note]:
        for function, refs, blocks in self.taken:
            at = holder(refs)
            names = ", ".join(path_text(ref.steps[len(at.steps) :]) for ref in refs)
            times = "" if blocks == 1 else f", on {blocks} blocks"
            text = f"{len(refs)} products of one input are one, weights side by side: {names}"
            fewer = (len(refs) - 1) * blocks
            yield Note("join", module.origin(function), text + times, fewer)


def _members(root: Instance) -> frozenset[str]:
    """What members and children are called anywhere in a model."""
    blocks = root.kinds()
    return frozenset(name for block in blocks for name in (*block.members, *block.children))
