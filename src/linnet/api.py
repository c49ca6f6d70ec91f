"""Source in, checked program out: the front end's stages in a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from linnet.diagnostics import CompileError, Diagnostic
from linnet.elaborate import check
from linnet.ir import Program
from linnet.packages import ModuleGraph, load_sources


@dataclass(frozen=True, slots=True)
class Checked:
    """A check's outcome. With errors in it, only the sound parts of `program` may be used.

    `diagnostics` are all problems of reading, parsing and checking; warnings are among them only
    when there are no errors.
    """

    graph: ModuleGraph
    program: Program
    diagnostics: tuple[Diagnostic, ...]

    @property
    def has_errors(self) -> bool:
        return any(each.severity == "error" for each in self.diagnostics)


def check_paths(paths: Iterable[Path | str], std_root: Path | str | None = None) -> Checked:
    """Parse and check files and folders with all they import."""
    graph = load_sources(paths, None if std_root is None else Path(std_root))
    program = check(graph)
    found = tuple(dict.fromkeys((*graph.diagnostics, *program.diagnostics)))
    errors = tuple(each for each in found if each.severity == "error")
    return Checked(graph, program, errors or found)


def load_program(path: Path | str, std_root: Path | str | None = None) -> Program:
    """The checked program of a file or a package's folder.

    `std_root` replaces the standard library. Raises `CompileError` with every problem found.
    """
    checked = check_paths([_entry_file(Path(path))], std_root)
    if checked.has_errors:
        raise CompileError(checked.diagnostics)
    return checked.program


def _entry_file(path: Path) -> Path:
    """A package's folder stands for its `src/lib.linnet` when it has one."""
    library = path / "src" / "lib.linnet"
    return library if library.is_file() else path
