"""How much of a model one token uses: the weights that are read for it, and the state of a row.

Which weights a token reads only in part is found in the program: an op that looks up experts or
table rows says how many of them it takes by the shapes it is called with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from linnet.ir import Function, Op
from linnet.ir.walk import bodies, definitions, walk
from linnet.passes import Binding, bind
from linnet.passes.bound import Instance
from linnet.types import GenericArg, Subst, TensorType

EXPERT_OPS = frozenset(
    f"std.nn.moe::{name}" for name in ("linear_experts", "linear_experts_shared", "combine_experts")
)
LOOK_UP = "std.nn.embedding::embedding"
ROW_SIZES = ("MaxSeq",)  # generics that say how many positions a row's state holds

Share = Fraction


@dataclass(frozen=True, slots=True)
class StateSize:
    """Bytes of one row's state: for each position, and beside the positions."""

    positions: int
    each: int
    fixed: int


def shares(binding: Binding) -> dict[str, Share]:
    """The part that one token reads of each parameter it does not read whole, by path: of stacked
    experts those chosen, of a look-up table one row."""
    found: dict[str, Share | None] = {}
    known: dict[tuple[str, tuple[GenericArg, ...]], dict[str, Share | None]] = {}
    for prefix, instance in binding.root.places() if binding.root else ():
        key = (instance.block, instance.args)
        if key not in known:
            known[key] = _uses_of(binding, instance)
        for path, share in known[key].items():
            _add(found, prefix + path, share)
    return {path: share for path, share in found.items() if share is not None}


def _add(found: dict[str, Share | None], path: str, share: Share | None) -> None:
    """The larger of two uses; None is all of it."""
    before = found.get(path, share)
    found[path] = None if before is None or share is None else max(before, share)


def _uses_of(binding: Binding, instance: Instance) -> dict[str, Share | None]:
    """What the methods of one block read of parameters, the paths starting there."""
    found: dict[str, Share | None] = {}
    for function in binding.program.functions.values():
        if function.block == instance.block:
            variables = [g.var for g in function.generics[: len(instance.args)]]
            bound = Subst.of(dict(zip(variables, instance.args, strict=True)))
            for path, share in _uses(binding, function, bound):
                _add(found, path, share)
    return found


def _uses(binding: Binding, function: Function, bound: Subst) -> Iterator[tuple[str, Share | None]]:
    """Each use of a parameter in a function, with the share read or None for all of it."""
    made: dict[Any, Op] = {}
    for body in bodies(function):
        made |= definitions(body)
    params = {v: op.attrs["ref"] for v, op in made.items() if op.kind == "param"}
    for op in walk(function):
        for index, value in enumerate(op.operands):
            ref = params.get(value)
            if ref is not None and ref.root is None:
                yield ".".join(map(str, ref.steps)), _share(binding, op, index, bound)


def _share(binding: Binding, op: Op, index: int, bound: Subst) -> Share | None:
    callee = op.attrs["callee"] if op.kind == "call" else None
    if callee not in EXPERT_OPS and callee != LOOK_UP:
        return None
    names = [p.name for p in binding.program.functions[callee].params]
    held = _extent(op, index, 0, bound)
    if callee == LOOK_UP:
        return Share(1, held) if names[index] == "table" and held else None
    taken = _extent(op, names.index("experts"), -1, bound)
    if names[index] != "weight" or not held or taken is None:
        return None
    return Share(min(taken, held), held)


def _extent(op: Op, operand: int, axis: int, bound: Subst) -> int | None:
    type_ = op.operands[operand].type
    assert isinstance(type_, TensorType)
    return bound.dim(type_.dims[axis]).constant


def row_state(binding: Binding) -> StateSize | None:
    """What one row's state takes, every state's first axis being rows."""
    total = _row_bytes(binding)
    if total is None:
        return None
    for name in ROW_SIZES:
        size = binding.generics.get(name)
        if isinstance(size, int):
            longer: Mapping[str, Any] = {**binding.generics, name: size + 1}
            more = _row_bytes(bind(binding.program, binding.block, longer))
            each = (more or total) - total
            return StateSize(size, each, total - each * size)
    return StateSize(0, 0, total)


def _row_bytes(binding: Binding) -> int | None:
    from linnet.weights import manifest_of

    total = 0
    for state in manifest_of(binding).states:
        if not state.shape or not state.shape[0]:
            return None
        total += state.nbytes // state.shape[0]
    return total


__all__ = ["StateSize", "row_state", "shares"]
