"""What is kept of a program beside its compiled objects, so that a model that was loaded before is
loaded again without running the front end.

Kept files are named by everything they were made from: the sources of the package and of those it
depends on, the generics and options, linnet's own files, the compiler and the processor. They lie
in the folder of compiled objects, under its rules: what that folder holds is executed, so that
reading values back from it (with `pickle`) trusts nothing that was not trusted before.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import linnet
from linnet.backends.source import Source
from linnet.diagnostics import CompileError, Span
from linnet.dims import Dim
from linnet.dims.dim import Op as DimOp
from linnet.native.toolchain.store import content_key, kept_file, stored_file
from linnet.packages import Package, find_package, read_package
from linnet.packages.files import FileError, read_bytes
from linnet.packages.manifest import MANIFEST_NAME
from linnet.version import __version__

_SUFFIX = ".facts"
_MOST_PARTS = 8192
_OWN = (".py", ".linnet", ".h", ".cpp")


@cache
def own_key() -> str:
    """This copy of linnet."""
    return files_key(Path(linnet.__file__).parent)


def files_key(root: Path) -> str:
    """The places and the contents of a package's own files. Not their sizes and times: those of
    an unpacked archive may be the same for two versions."""
    parts: list[str | bytes] = [__version__, str(root)]
    stack, found = [str(root)], list[str]()
    while stack:
        with os.scandir(stack.pop()) as items:
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    stack.append(item.path)
                elif item.name.endswith(_OWN):
                    found.append(item.path)
    for path in sorted(found):
        with open(path, "rb", buffering=0) as file:
            parts += [os.path.relpath(path, root), file.read()]
    return content_key(parts)


def source_key(source: Source, std_root: str | Path | None) -> str | None:
    """The place and the contents of every file that a package or a lone file may be made from (the
    place is in messages of failing calls); None for a program that is no file."""
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    library = path / "src" / "lib.linnet"
    file = library if library.is_file() else path
    try:
        package = find_package(file)
        parts: list[str | bytes] = ["sources 2", str(path), read_bytes(file)]
        if package is not None:
            parts += [os.path.relpath(file.resolve(), package.root), *_packages(package)]
        if std_root is not None:
            parts += ["library", *_files(Path(std_root))]
    except (CompileError, FileError, OSError):  # the front end says what is wrong
        return None
    return None if len(parts) > _MOST_PARTS else content_key(parts)


def _packages(first: Package) -> list[str | bytes]:
    """A package's files and those of all it depends on."""
    parts: list[str | bytes] = []
    seen: set[Path] = set()
    waiting = [first]
    while waiting and len(parts) <= _MOST_PARTS:
        package = waiting.pop()
        if package.root in seen:
            continue
        seen.add(package.root)
        parts += [read_bytes(package.root / MANIFEST_NAME), *_files(package.source)]
        waiting += [read_package(each.path)[0] for each in package.dependencies]
    return parts


def _files(root: Path) -> Iterable[str | bytes]:
    for path in sorted(root.rglob("*.linnet"))[:_MOST_PARTS]:
        yield str(path.relative_to(root))
        yield read_bytes(path)


def program_key(
    source: Source,
    root: str | None,
    entry: str | None,
    generics: Mapping[str, int | str],
    std_root: str | Path | None,
) -> str | None:
    """A name for a bound program and what is known of it."""
    sources = source_key(source, std_root)
    if sources is None:
        return None
    given = sorted(f"{name}={value!r}" for name, value in generics.items())
    return content_key(("program 1", own_key(), sources, repr(root), repr(entry), *given))


def write(key: str, value: Any) -> None:
    """Keeps a value under a name; not where the cache cannot be written, or the value not kept."""
    try:
        data = _bytes(value)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return
    with suppress(OSError):
        kept_file(key, lambda folder, file: _put(file, data), _SUFFIX)


def _put(file: Path, data: bytes) -> None:
    file.write_bytes(data)


def read(key: str, kind: type) -> Any:
    """The value of that type kept under a name, or None."""
    path = stored_file(key, _SUFFIX)
    if path is None:
        return None
    try:
        value = pickle.loads(path.read_bytes())
    except Exception:  # whatever a damaged file leads to, the front end knows better
        return None
    return value if isinstance(value, kind) else None


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Hashes are made anew in each process; places in sources are left out."""
        if isinstance(value, Dim):
            return Dim, (value.terms,)
        if isinstance(value, DimOp):
            return DimOp, (value.kind, value.args)
        if isinstance(value, Span):
            return _nothing, ()
        if isinstance(value, MappingProxyType):
            return MappingProxyType, (dict(value),)
        return NotImplemented


def _nothing() -> None:
    return None


def _bytes(value: Any) -> bytes:
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(value)
    return out.getvalue()
