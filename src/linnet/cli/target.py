"""What a path on the command line stands for when a block of it is bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from linnet.api import load_program
from linnet.cli.options import Bound
from linnet.cli.roots import choose_root, split_bindings
from linnet.ir import Program
from linnet.passes import bind
from linnet.types import GenericArg


@dataclass(frozen=True, slots=True)
class Target:
    """A checked program with what is bound of it: block, entries and the values of generics.

    `sizes` are those of the entries' own generics; a dimension left out stays symbolic. `present`
    are the optional parameters that are there, `bindings` is a card's file of names of weights.
    """

    program: Program
    block: str | None
    entries: Sequence[str]
    generics: Mapping[str, Any]
    sizes: Mapping[str, GenericArg]
    present: tuple[str, ...] = ()
    bindings: Path | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    path: Path
    root: str | None = None
    generics: Mapping[str, int | str] = field(default_factory=dict)
    bindings: Path | None = None


def read_target(
    path: Path,
    root: str | None,
    entry: str | None,
    bindings: Mapping[str, Bound],
    present: Sequence[str] = (),
) -> Target:
    """Load and check `path` and choose what is bound.

    A model folder gives its card's root and generics where `root` and `bindings` say nothing, and
    has the optional parameters that its bindings file names besides those of `present`, which are
    paths or templates as in such a file. Raises `CompileError`, `BindError`, `WeightError` for a
    bindings file that cannot be read, or misuse for what does not fit.
    """
    source = _source(path)
    program = load_program(source.path)
    block = choose_root(program, source.root if root is None else root, entry)
    name = None if block is None else block.name
    entries = list(program.entries(name)) if entry is None else [entry]
    own = {generic.name for generic in block.generics} if block is not None else set()
    defaults = {key: value for key, value in source.generics.items() if key in own}
    generics, sizes = split_bindings(program, block, entries, {**defaults, **bindings})
    made = Target(program, name, entries, generics, sizes, bindings=source.bindings)
    return replace(made, present=_present(made, present))


def _present(target: Target, named: Sequence[str]) -> tuple[str, ...]:
    """The optional parameters among those that the bindings file or the command names. Lines of the
    file for what is not there, or not all there, as another root's, say nothing here."""
    lines = target.bindings if target.bindings is not None and target.bindings.is_file() else None
    if lines is None and not named:
        return ()
    from linnet.backends.present import lacking, not_optional, optional_paths, present_paths
    from linnet.weights import Bindings, manifest_of, read_bindings

    manifest = manifest_of(bind(target.program, target.block, target.generics))
    optional = optional_paths(manifest)
    found = set(optional).intersection(
        () if lines is None else read_bindings(lines).expand(manifest)[0]
    )
    while parts := lacking(manifest, found):
        found = {path for path in found if not any(path.startswith(f"{b}.") for b in parts)}
    for path in named:
        paths = optional.intersection(Bindings({path: path}).expand(manifest)[0])
        if not paths:
            raise click.UsageError(not_optional("--present", path, optional))
        found |= paths
    try:
        present_paths(manifest, found)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return tuple(sorted(found))


def _source(path: Path) -> _Source:
    if not (path / "nest.toml").is_file():
        return _Source(path)
    from linnet.nest.card import Card

    card = Card.read(path)
    return _Source(card.source_path, card.source.root, card.generics, card.bindings_path)
