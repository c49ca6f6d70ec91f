"""Which block of a program a command is about, and which generic a binding belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from linnet.cli.options import Bound
from linnet.dims import Dim
from linnet.ir import Block, Generic, Program
from linnet.packages.names import nearest
from linnet.types import DTYPES, DTypeVar, GenericArg, PackVar


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
    program: Program, root: Block | None, entries: Sequence[str], bindings: Mapping[str, Bound]
) -> tuple[dict[str, Any], dict[str, GenericArg]]:
    """Bindings of the block's generics, and those of its entries' own, as arguments."""
    declared = {generic.name for generic in root.generics} if root is not None else set()
    functions = program.entries(None if root is None else root.name)
    own = {g.name: g for name in entries for g in functions[name].generics}
    inner = own.keys() - declared
    unknown = [name for name in bindings if name not in declared | inner]
    if unknown:
        known = ", ".join(sorted(declared | inner)) or "none"
        names = ", ".join(f"`{name}`" for name in unknown)
        raise click.BadParameter(f"no generic {names}; known: {known}", param_hint="--bind")
    declarations = {g.name: g for g in root.generics} if root is not None else {}
    for name, value in bindings.items():
        _check_form(declarations.get(name) or own[name], value)
    outer = {name: value for name, value in bindings.items() if name in declared}
    sizes = {name: _argument(name, value) for name, value in bindings.items() if name in inner}
    return outer, sizes


def _check_form(generic: Generic, value: Bound) -> None:
    """Misuse when the value is of another form than the generic's kind has."""
    name = generic.name
    form: type[Bound] = int
    wanted = f"a size, such as {name}=64"
    if isinstance(generic.var, PackVar):
        form, wanted = tuple, f"a list of sizes, such as {name}=2,3 ({name}=2, for a single one)"
    elif isinstance(generic.var, DTypeVar):
        form, wanted = str, f"a dtype, such as {name}=f32"
    if not isinstance(value, form):
        given = ",".join(map(str, value)) if isinstance(value, tuple) else value
        raise click.BadParameter(f"`{name}` is {wanted}, not `{given}`", param_hint="--bind")


def _argument(name: str, value: Bound) -> GenericArg:
    if isinstance(value, int):
        return Dim.of(value)
    if isinstance(value, tuple):
        return tuple(map(Dim.of, value))
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
    raise click.BadParameter(
        f"{place} has no entry `{entry}`; {_listed(program, block)}", param_hint="--entry"
    )


def _listed(program: Program, block: Block | None) -> str:
    """The entries of a block; for a module its own and those of its blocks."""
    own = ", ".join(program.entries(None if block is None else block.name))
    found = [f"its entries: {own}"] if own else []
    for inner in program.blocks.values() if block is None else ():
        names = ", ".join(program.entries(inner.name))
        if names and inner.name.startswith(f"{program.root}::"):
            found.append(f"those of `{inner.short_name}`: {names}")
    return "; ".join(found) or "there are none"
