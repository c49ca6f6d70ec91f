"""bind: a checked program with its root block's generics filled in.

Needs a program without errors, the root block (or None: the module's own entries) and a value for
each generic without a default. Guarantees that every `where` clause of the root and of every block
below it holds, and lists the parameters and states in the source's order. Blocks with equal
arguments are one shared `Instance`, so depth costs nothing but the listing of paths, which is
limited before it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from linnet.diagnostics import Span
from linnet.ir import Block, Program, Sub
from linnet.passes.generics import (
    BindError,
    BoundValue,
    check_generics,
    check_where,
    plain_value,
    size_of,
)
from linnet.types import DType, GenericArg, Subst, TensorType

__all__ = [
    "BindError",
    "Binding",
    "BoundValue",
    "Instance",
    "ParamInfo",
    "StateInfo",
    "bind",
    "find_block",
    "size_of",
]

# What a listing may hold: far above any model, far below what would hurt.
MAX_PATHS = 200_000
MAX_INSTANCES = 200_000
MAX_KINDS = 20_000
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """A parameter or buffer. `path` starts at the binding's root, or in an `Instance.members` at
    that instance; `optional` is also set below an optional child block."""

    path: str
    kind: Literal["param", "buffer"]
    type: TensorType
    optional: bool
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class StateInfo:
    path: str
    type: TensorType
    optional: bool = False  # below an optional child block
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """A block with concrete arguments, shared by all places that hold an equal one.

    `members` and `children` are by name, in source order; an array is a tuple of one instance
    repeated. `params` and `states` list everything below with paths that start here.
    """

    block: str
    args: tuple[GenericArg, ...]
    members: Mapping[str, ParamInfo | StateInfo]
    children: Mapping[str, Instance | tuple[Instance, ...]]
    optional_children: frozenset[str]
    params: tuple[ParamInfo, ...]
    states: tuple[StateInfo, ...]
    size: int  # instances in this tree, this one included

    def child(self, steps: tuple[str | int, ...]) -> Instance | tuple[Instance, ...]:
        """The instance, or array of them, at the end of `steps`."""
        at: Instance | tuple[Instance, ...] = self
        for step in steps:
            at = at.children[str(step)] if isinstance(at, Instance) else at[int(step)]
        return at

    def places(self, prefix: str = "") -> Iterator[tuple[str, Instance]]:
        """Every block from here down, outer before inner, with what its members' paths start
        with."""
        yield prefix, self
        for name, child in self.children.items():
            if isinstance(child, tuple):
                for index, element in enumerate(child):
                    yield from element.places(f"{prefix}{name}.{index}.")
            else:
                yield from child.places(f"{prefix}{name}.")

    def kinds(self) -> tuple[Instance, ...]:
        """Every kind of block from here down, each once, inner before outer."""
        found: dict[int, Instance] = {}

        def visit(instance: Instance) -> None:
            if id(instance) in found:
                return
            for child in instance.children.values():
                for each in child[:1] if isinstance(child, tuple) else (child,):
                    visit(each)
            found[id(instance)] = instance

        visit(self)
        return tuple(found.values())


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A program bound to its root's generics; `root` is None for a module without a block."""

    program: Program
    root: Instance | None
    block: str | None
    generics: Mapping[str, int | DType | tuple[int, ...]]
    params: tuple[ParamInfo, ...]
    states: tuple[StateInfo, ...]


def bind(program: Program, block: str | None, generics: Mapping[str, BoundValue]) -> Binding:
    """Binds `block` (its full or short name) of `program`; raises `BindError` with all problems."""
    if program.has_errors:
        raise BindError("the program has errors and cannot be bound")
    if block is None:
        if generics:
            names = ", ".join(f"`{name}`" for name in generics)
            raise BindError(f"{names} given, but no block is bound, so there are no generics")
        return Binding(program, None, None, {}, (), ())
    root = find_block(program, block)
    args = check_generics(root.short_name, root.generics, generics)
    instance = _Tree(program).instance(root, args, 0)
    values = {g.name: plain_value(arg) for g, arg in zip(root.generics, args, strict=True)}
    return Binding(program, instance, root.name, values, instance.params, instance.states)


def find_block(program: Program, name: str) -> Block:
    """The block of this full or short name; the root module's goes before others'."""
    if name in program.blocks:
        return program.blocks[name]
    own = program.blocks.get(f"{program.root}::{name}")
    if own is not None:
        return own
    found = [b for b in program.blocks.values() if b.short_name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise BindError(f"several blocks are called `{name}`: {', '.join(b.name for b in found)}")
    known = ", ".join(sorted(b.short_name for b in program.blocks.values())) or "none"
    raise BindError(f"there is no block `{name}`; the program's blocks: {known}")


class _Tree:
    """Builds instances, each kind once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kinds: dict[tuple[str, tuple[GenericArg, ...]], Instance] = {}

    def instance(self, block: Block, args: tuple[GenericArg, ...], depth: int) -> Instance:
        key = (block.name, args)
        if key in self.kinds:
            return self.kinds[key]
        if depth > MAX_DEPTH or len(self.kinds) >= MAX_KINDS:
            raise BindError(f"blocks are nested too deeply or too variously at `{block.name}`")
        subst = Subst.of({g.var: arg for g, arg in zip(block.generics, args, strict=True)})
        check_where(block.short_name, block.generics, args, block.where, subst)
        members = {
            m.name: _member(m.name, m.kind, m.type, m.optional, m.span, subst)
            for m in block.members.values()
        }
        children = {s.name: self._child(block, s, subst, depth) for s in block.subs.values()}
        built = _assemble(block, args, members, children)
        self.kinds[key] = built
        return built

    def _child(
        self, owner: Block, sub: Sub, subst: Subst, depth: int
    ) -> Instance | tuple[Instance, ...]:
        args = tuple(map(subst.arg, sub.args))
        if sub.count is None:
            return self.instance(self.program.blocks[sub.block], args, depth + 1)
        count = size_of(subst.dim(sub.count))
        if count == 0:
            return ()
        child = self.instance(self.program.blocks[sub.block], args, depth + 1)
        total = count * max(child.size, len(child.params) + len(child.states))
        if total > MAX_INSTANCES:
            raise BindError(
                f"`{owner.short_name}.{sub.name}` has {count:,} elements of `{child.block}`, "
                f"more than the {MAX_INSTANCES:,} blocks and paths a model may have"
            )
        return (child,) * count


def _member(
    name: str, kind: str, type_: object, optional: bool, span: Span | None, subst: Subst
) -> ParamInfo | StateInfo:
    if not isinstance(type_, TensorType):
        raise BindError(f"the member `{name}` is no tensor")
    concrete = TensorType(subst.shape(type_.shape), subst.dtype(type_.dtype))
    for dim in concrete.dims:
        if size_of(dim) < 0:
            raise BindError(f"the member `{name}` would have the negative extent {dim}")
    if kind == "state":
        return StateInfo(name, concrete, span=span)
    return ParamInfo(name, "buffer" if kind == "buffer" else "param", concrete, optional, span)


def _assemble(
    block: Block,
    args: tuple[GenericArg, ...],
    members: dict[str, ParamInfo | StateInfo],
    children: dict[str, Instance | tuple[Instance, ...]],
) -> Instance:
    optional = frozenset(s.name for s in block.subs.values() if s.optional)
    params: list[ParamInfo] = []
    states: list[StateInfo] = []
    size = 1
    for name in _source_order(block):
        if name in members:
            info = members[name]
            (params if isinstance(info, ParamInfo) else states).append(info)  # type: ignore[arg-type]
            continue
        child = children[name]
        elements = child if isinstance(child, tuple) else (child,)
        for index, element in enumerate(elements):
            prefix = f"{name}.{index}." if isinstance(child, tuple) else f"{name}."
            _extend(params, states, element, prefix, name in optional)
            size += element.size
    if max(len(params), len(states)) > MAX_PATHS or size > MAX_INSTANCES:
        raise BindError(
            f"`{block.short_name}` has {len(params):,} parameters in {size:,} blocks, "
            f"more than the {MAX_PATHS:,} a model may have"
        )
    return Instance(
        block.name, args, members, children, optional, tuple(params), tuple(states), size
    )


def _extend(
    params: list[ParamInfo],
    states: list[StateInfo],
    element: Instance,
    prefix: str,
    optional: bool,
) -> None:
    params.extend(
        ParamInfo(prefix + p.path, p.kind, p.type, p.optional or optional, p.span)
        for p in element.params
    )
    states.extend(
        StateInfo(prefix + s.path, s.type, s.optional or optional, s.span) for s in element.states
    )


def _source_order(block: Block) -> list[str]:
    """Members and child blocks as the source lists them."""
    spans = {name: m.span for name, m in block.members.items()}
    spans.update({name: s.span for name, s in block.subs.items()})
    if any(span is None for span in spans.values()):
        return list(spans)
    return sorted(spans, key=lambda name: spans[name].start)  # type: ignore[union-attr]
