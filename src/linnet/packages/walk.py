"""The `.linnet` files that paths on a command line stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.packages.display import shown_path
from linnet.packages.files import real_path
from linnet.packages.manifest import MANIFEST_NAME
from linnet.packages.resolve import SUFFIX

MAX_FILES = 5000
MAX_ENTRIES = 200_000


def source_files(paths: Iterable[Path]) -> tuple[list[Path], list[Diagnostic]]:
    """Files as they are; a folder as every `.linnet` file under its `src`, or under itself.

    Links are not followed out of a folder, and hidden folders are left alone. A folder without
    any source file is a problem, as is one with too many. The order is sorted within a folder.
    """
    files: dict[Path, None] = {}
    problems: list[Diagnostic] = []
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 - `Path.is_dir` raises on a NUL
            files[path] = None
            continue
        found = sorted(islice(_in_folder(path), MAX_FILES + 1))
        if len(found) > MAX_FILES:
            message = f"`{shown_path(path)}` holds more than {MAX_FILES:,} `.linnet` files"
            problems.append(Diagnostic("E1202", message, None))
        elif not found:
            message = f"`{shown_path(path)}` holds no `.linnet` file"
            problems.append(Diagnostic("E1202", message, None))
        else:
            files.update(dict.fromkeys(found))
    return list(files), problems


def _in_folder(folder: Path) -> Iterator[Path]:
    source = folder / "src"
    top = source if (folder / MANIFEST_NAME).is_file() and source.is_dir() else folder
    budget = MAX_ENTRIES
    real_top = real_path(top)
    for place, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        budget -= len(names) + len(folders)
        if budget < 0:
            return
        for name in names:
            path = Path(place, name)
            if name.endswith(SUFFIX) and real_path(path).is_relative_to(real_top):
                yield path
