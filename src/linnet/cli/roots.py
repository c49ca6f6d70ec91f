"""Which block of a program a command is about, and which generic a binding belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from linnet.dims import Dim
from linnet.ir import Block, Program
from linnet.packages.names import nearest
from linnet.types import DTYPES, GenericArg


def choose_root(program: Program, root: str | None, entry: str | None) -> Block | None:
    """The block named `root`, or the only one of the module that has `entry` (any entry if None).

    None stands for the module's own entries. Several candidates are misuse that lists them.
    """
    own = {
        block.short_name: block
        for block in program.blocks.values()
        if block.name.startswith(f"{program.root}::")
    }
    if root is not None:
        if root not in own:
            near = nearest(root, own)
            tail = f"; did you mean `{near}`?" if near else ""
            raise click.BadParameter(f"there is no block `{root}`{tail}", param_hint="--root")
        _require(program, own[root], entry)
        return own[root]
    fitting = [block for block in own.values() if _has(program, block, entry)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(f"`{block.short_name}`" for block in fitting)
        raise click.UsageError(f"several blocks have it: choose one of {names} with --root")
    _require(program, None, entry)
    return None


def split_bindings(
    program: Program, root: Block | None, entries: Sequence[str], bindings: Mapping[str, int | str]
) -> tuple[dict[str, int | str], dict[str, GenericArg]]:
    """Bindings of the block's generics, and those of its entries' own, as arguments."""
    declared = {generic.name for generic in root.generics} if root is not None else set()
    functions = program.entries(None if root is None else root.name)
    inner = {g.name for name in entries for g in functions[name].generics} - declared
    unknown = [name for name in bindings if name not in declared | inner]
    if unknown:
        known = ", ".join(sorted(declared | inner)) or "none"
        names = ", ".join(f"`{name}`" for name in unknown)
        raise click.BadParameter(f"no generic {names}; known: {known}", param_hint="--bind")
    outer = {name: value for name, value in bindings.items() if name in declared}
    sizes = {name: _argument(name, value) for name, value in bindings.items() if name in inner}
    return outer, sizes


def _argument(name: str, value: int | str) -> GenericArg:
    if isinstance(value, int):
        return Dim.of(value)
    if value not in DTYPES:
        raise click.BadParameter(f"`{value}` for `{name}` is no dtype", param_hint="--bind")
    return DTYPES[value]


def _has(program: Program, block: Block | None, entry: str | None) -> bool:
    entries = program.entries(None if block is None else block.name)
    return bool(entries) if entry is None else entry in entries


def _require(program: Program, block: Block | None, entry: str | None) -> None:
    """Misuse when the block, or the module, lacks the entry."""
    if _has(program, block, entry):
        return
    place = "the module" if block is None else f"`{block.short_name}`"
    if entry is None:
        raise click.UsageError(f"{place} has no entry")
    known = program.entries(None if block is None else block.name)
    listed = ", ".join(known) or "none"
    raise click.BadParameter(
        f"{place} has no entry `{entry}`; its entries: {listed}", param_hint="--entry"
    )
