"""From what a loader is given to a bound program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from linnet.ir import Program
from linnet.passes import Binding, bind
from linnet.types import GenericArg

Source = str | Path | Program | Binding


def bound(
    source: Source,
    root: str | None,
    entry: str | None,
    generics: Mapping[str, int | str],
    std_root: str | Path | None = None,
) -> Binding:
    """The program of `source` (a file, a package's folder, a program or a binding), bound."""
    if isinstance(source, Binding):
        return source
    if isinstance(source, Program):
        program = source
    else:
        from linnet.api import load_program

        program = load_program(source, std_root)
    return bind(program, choose_root(program, root, entry), generics)


def choose_root(program: Program, root: str | None, entry: str | None) -> str | None:
    """The block to bind: the one named, or the only one of the module that has the entry."""
    if root is not None:
        return root
    own = [b for b in program.blocks.values() if b.name.startswith(f"{program.root}::")]
    entries = {b.name: program.entries(b.name) for b in own}
    fitting = [b for b in own if (entry in entries[b.name] if entry else entries[b.name])]
    if len(fitting) > 1:
        names = ", ".join(b.short_name for b in fitting)
        raise ValueError(f"several blocks have entries: choose one of {names} with `root`")
    if fitting:
        return fitting[0].name
    if not program.entries(None):
        raise ValueError(f"`{program.root}` has no entry{f' `{entry}`' if entry else ''}")
    return None


def default_entry(binding: Binding, entry: str | None) -> str | None:
    """The entry that a call of the model runs: the one named, `forward`, or the only one."""
    entries = binding.program.entries(binding.block)
    if entry is not None:
        if entry not in entries:
            known = ", ".join(sorted(entries)) or "none"
            raise ValueError(f"there is no entry `{entry}`; the model's entries: {known}")
        return entry
    if "forward" in entries:
        return "forward"
    return next(iter(entries)) if len(entries) == 1 else None


def block_args(binding: Binding) -> dict[str, GenericArg]:
    """What each generic of the bound block is, by name."""
    if binding.root is None or binding.block is None:
        return {}
    declared = binding.program.blocks[binding.block].generics
    return {g.name: arg for g, arg in zip(declared, binding.root.args, strict=True)}
