"""What a path on the command line stands for when a block of it is bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linnet.api import load_program
from linnet.cli.options import Bound
from linnet.cli.roots import choose_root, split_bindings
from linnet.ir import Program
from linnet.types import GenericArg


@dataclass(frozen=True, slots=True)
class Target:
    """A checked program with what is bound of it: block, entries and the values of generics.

    `sizes` are those of the entries' own generics; a dimension left out stays symbolic.
    """

    program: Program
    block: str | None
    entries: Sequence[str]
    generics: Mapping[str, Any]
    sizes: Mapping[str, GenericArg]


@dataclass(frozen=True, slots=True)
class _Source:
    path: Path
    root: str | None = None
    generics: Mapping[str, int | str] = field(default_factory=dict)


def read_target(
    path: Path, root: str | None, entry: str | None, bindings: Mapping[str, Bound]
) -> Target:
    """Load and check `path` and choose what is bound.

    A model folder gives its card's root and generics where `root` and `bindings` say nothing.
    Raises `CompileError`, or misuse for what does not fit.
    """
    source = _source(path)
    program = load_program(source.path)
    block = choose_root(program, source.root if root is None else root, entry)
    name = None if block is None else block.name
    entries = list(program.entries(name)) if entry is None else [entry]
    own = {generic.name for generic in block.generics} if block is not None else set()
    defaults = {key: value for key, value in source.generics.items() if key in own}
    generics, sizes = split_bindings(program, block, entries, {**defaults, **bindings})
    return Target(program, name, entries, generics, sizes)


def _source(path: Path) -> _Source:
    if not (path / "nest.toml").is_file():
        return _Source(path)
    from linnet.nest.card import Card

    card = Card.read(path)
    return _Source(card.source_path, card.source.root, card.generics)
