"""Logical module paths to files: `crate.a.b`, `std.a.b`, `dep.a.b`. Never out of a root."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import Span
from linnet.packages.display import shown_path
from linnet.packages.files import real_path
from linnet.packages.manifest import MANIFEST_NAME, read_package
from linnet.packages.names import IDENTIFIER, nearest
from linnet.packages.package import LIBRARY_NAME, Package

SUFFIX = ".linnet"
_MAX_PARTS = 64
_MAX_PART = 200
_MAX_LISTED = 1000


@dataclass(frozen=True, slots=True)
class Resolved:
    """A module that exists: its file with links resolved, and the package it belongs to."""

    path: Path
    package: Package


def resolve_module(
    parts: Sequence[str], package: Package | None, library: Package, span: Span | None = None
) -> Resolved | Diagnostic:
    """The file of the module `parts` names, seen from a file of `package` (None: a lone file).

    Answers a diagnostic at `span` when there is none: E1202, or E5001 for a dependency whose
    `linnet.toml` is broken.
    """
    return Resolver(library).resolve(parts, package, span)


class Resolver:
    """Resolution with each dependency's manifest read once.

    `boundary` is a folder no dependency may lie outside of; None leaves dependencies free.
    """

    def __init__(self, library: Package, boundary: Path | None = None) -> None:
        self.library = library
        self.boundary = None if boundary is None else real_path(boundary)
        self._packages: dict[Path, Package | Diagnostic] = {}

    def resolve(
        self, parts: Sequence[str], package: Package | None, span: Span | None
    ) -> Resolved | Diagnostic:
        """As `resolve_module`."""
        if not _sane(parts):
            return Diagnostic("E1202", "this is not the path of a module", span)
        home = self._home(parts, package, span)
        if isinstance(home, Diagnostic):
            return home
        return _module_file(parts, home, span)

    def _home(
        self, parts: Sequence[str], package: Package | None, span: Span | None
    ) -> Package | Diagnostic:
        """The package the first name of a path leads to."""
        first = parts[0]
        if first == LIBRARY_NAME:
            return self.library
        if package is None:
            return Diagnostic(
                "E1202",
                f"there is no module `{'.'.join(parts)}` here: this file lies outside a package,"
                " so it may import only from `std`",
                span,
                help=f"put a `{MANIFEST_NAME}` beside its `src` folder to make it a package"
                " (`linnet init` writes one)",
            )
        if first == "crate":
            return package
        dependency = package.dependency(first)
        if dependency is None:
            return self._unknown(parts, package, span)
        if self.boundary is not None and not dependency.path.is_relative_to(self.boundary):
            message = f"the dependency `{first}` leads out of the folder it may lie in"
            return Diagnostic("E1202", message, span)
        return self._read(first, dependency.path, span)

    def _unknown(self, parts: Sequence[str], package: Package, span: Span | None) -> Diagnostic:
        first, rest = parts[0], parts[1:]
        known = [LIBRARY_NAME, "crate", *(each.key for each in package.dependencies)]
        near = nearest(first, known)
        if first == package.name:
            help_text = f"write `{'.'.join(['crate', *rest])}` for a module of this package"
        elif near is not None:
            help_text = f"did you mean `{'.'.join([near, *rest])}`?"
        else:
            help_text = (
                "a module path starts with `crate`, `std` or a key of `[dependencies]`"
                f" in `{MANIFEST_NAME}`"
            )
        message = f"the package `{package.name}` has no dependency `{first}`"
        return Diagnostic("E1202", message, span, help=help_text)

    def _read(self, key: str, folder: Path, span: Span | None) -> Package | Diagnostic:
        if folder not in self._packages:
            package, problems = read_package(folder)
            self._packages[folder] = problems[0] if problems else package
        found = self._packages[folder]
        if isinstance(found, Package):
            return found
        note = str(found.span) + ": " + found.message if found.span else found.message
        message = f"the dependency `{key}` is not a package that can be used"
        return Diagnostic("E5001", message, span, notes=(note,))


def _sane(parts: Sequence[str]) -> bool:
    return 0 < len(parts) <= _MAX_PARTS and all(
        len(part) <= _MAX_PART and IDENTIFIER.match(part) for part in parts
    )


def _module_file(parts: Sequence[str], home: Package, span: Span | None) -> Resolved | Diagnostic:
    inner = parts[1:] or ["lib"]
    wanted = home.source.joinpath(*inner[:-1], inner[-1] + SUFFIX)
    logical = ".".join(parts)
    real = real_path(wanted)
    if not os.path.exists(real):  # noqa: PTH110 - `Path.exists` raises on a name too long
        return _missing(parts, home, wanted, span)
    if not real.is_relative_to(home.source):
        return Diagnostic(
            "E1202",
            f"the module `{logical}` leads out of its package through a link",
            span,
            notes=(f"a module of `{home.name}` must lie in `{shown_path(home.source)}`",),
        )
    if not _is_file(real):
        message = f"the module `{logical}` is not a file: `{shown_path(wanted)}`"
        return Diagnostic("E1202", message, span)
    return Resolved(real, home)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - `Path.is_file` raises on a name too long


def _missing(parts: Sequence[str], home: Package, wanted: Path, span: Span | None) -> Diagnostic:
    logical = ".".join(parts)
    near = nearest(parts[-1], _modules_in(wanted.parent)) if len(parts) > 1 else None
    help_text = None
    if near is not None:
        help_text = f"did you mean `{'.'.join([*parts[:-1], near])}`?"
    elif len(parts) > 2 and _is_file(wanted.parent.with_suffix(SUFFIX)):
        help_text = (
            f"`{parts[-1]}` may be an item of `{'.'.join(parts[:-1])}`:"
            f" write `use {'.'.join(parts[:-1])}::{{{parts[-1]}}}`"
        )
    place = shown_path(wanted) if home.name != LIBRARY_NAME else None
    notes = (f"looked for `{place}`",) if place else ()
    return Diagnostic("E1202", f"there is no module `{logical}`", span, notes=notes, help=help_text)


def _modules_in(folder: Path) -> Iterable[str]:
    """Names of modules and of folders of modules right in `folder`."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _MAX_LISTED)]
    except OSError:
        return ()
    return sorted(name.removesuffix(SUFFIX) for name in names if not name.startswith("."))
