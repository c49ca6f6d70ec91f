"""Parse results kept in memory, so that a second check in one process parses what changed."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile
from linnet.packages.files import decode_source, read_bytes
from linnet.syntax import parse_module, tree

MAX_ENTRIES = 2048


class NotTextError(Exception):
    """A file whose bytes are no UTF-8 text; `problem` says where."""

    def __init__(self, problem: Diagnostic) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    shown: str
    data: bytes
    file: SourceFile
    module: tree.Module
    diagnostics: tuple[Diagnostic, ...]


_entries: OrderedDict[Path, _Entry] = OrderedDict()
_lock = Lock()


def parse_cached(path: Path, shown: str) -> tuple[SourceFile, tree.Module, tuple[Diagnostic, ...]]:
    """The parsed file at `path`, the same objects as long as its bytes stay the same.

    The bytes are compared rather than the time of change: reading costs little beside parsing,
    and an edit within a clock tick of the last one is not missed. Raises `FileError`, and
    `NotTextError` for bytes that are no text.
    """
    data = read_bytes(path)
    with _lock:
        entry = _entries.get(path)
        if entry is not None and entry.data == data and entry.shown == shown:
            _entries.move_to_end(path)
            return entry.file, entry.module, entry.diagnostics
    entry = _parse(shown, data)
    with _lock:
        _entries[path] = entry
        _entries.move_to_end(path)
        while len(_entries) > MAX_ENTRIES:
            _entries.popitem(last=False)
    return entry.file, entry.module, entry.diagnostics


def _parse(shown: str, data: bytes) -> _Entry:
    file, problem = decode_source(shown, data)
    if problem is not None:
        raise NotTextError(problem)
    module, diagnostics = parse_module(file)
    return _Entry(shown, data, file, module, tuple(diagnostics))
