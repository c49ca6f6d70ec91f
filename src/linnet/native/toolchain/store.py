"""The folder of compiled objects: named by what they were made from, whole or not there at all.

Machine code is loaded from nowhere but a folder that belongs to this user and that nobody else can
write to. Where there can be no such folder, objects live in a temporary one as long as the process.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

_MAKING = ".making-"  # what the names of unfinished work begin with
UNFINISHED_SECONDS = 6 * 3600.0
UNUSED_SECONDS = 90 * 24 * 3600.0

SUFFIX = ".dll" if sys.platform == "win32" else ".so"


def cache_folder() -> Path:
    """Where objects are kept: below `LINNET_CACHE`, else the platform's cache folder."""
    named = os.environ.get("LINNET_CACHE")
    if named:
        return Path(named).expanduser().absolute() / "native"
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "linnet" / "native"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "linnet" / "native"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else home / ".cache") / "linnet" / "native"


def content_key(parts: Iterable[str | bytes]) -> str:
    """A name for everything that `parts` say; two lists of parts never read alike."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:40]


def stored_file(name: str, suffix: str = SUFFIX) -> Path | None:
    """The file called `name`, where the folder has it and nobody else could have changed it."""
    folder = cache_folder()
    final = folder / f"{name}{suffix}"
    if is_private(folder, stat.S_ISDIR) and is_private(final, stat.S_ISREG):
        return _used(final)
    return None


def object_file(name: str, make: Callable[[Path, Path], None], suffix: str = SUFFIX) -> Path:
    """The object called `name`; `make(folder, file)` makes it in an empty folder when it is not
    there yet."""
    folder = private_folder(cache_folder())
    if folder is not None:
        final = folder / f"{name}{suffix}"
        if is_private(final, stat.S_ISREG):
            return _used(final)
        made = _made(folder, final, make)
        if made is not None:
            return made
    final = _temporary() / f"{name}{suffix}"
    if final.is_file():
        return final
    made = _made(final.parent, final, make)
    if made is None:
        raise OSError(f"cannot write to the temporary folder {final.parent}")
    return made


def _made(folder: Path, final: Path, make: Callable[[Path, Path], None]) -> Path | None:
    """Makes the object beside its place and renames it there; None where nothing can be written."""
    try:
        work = Path(tempfile.mkdtemp(prefix=_MAKING, dir=folder))
    except OSError:
        return None
    _tidy(folder)
    try:
        file = work / final.name
        make(work, file)
        file.chmod(0o600)
        file.replace(final)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final


def _tidy(folder: Path) -> None:
    """Removes what killed processes left unfinished, and what nobody has used for long."""
    now = time.time()
    try:
        found = list(os.scandir(folder))
    except OSError:
        return
    for item in found:
        with suppress(OSError):
            age = now - item.stat(follow_symlinks=False).st_mtime
            if item.name.startswith(_MAKING) and age > UNFINISHED_SECONDS:
                shutil.rmtree(item.path, ignore_errors=True)
            elif item.is_file(follow_symlinks=False) and age > UNUSED_SECONDS:
                Path(item.path).unlink()


def _used(path: Path) -> Path:
    """Notes that a file is of use: the time of its change is what `_tidy` looks at."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > UNUSED_SECONDS / 10:
            os.utime(path)
    return path


def private_folder(folder: Path) -> Path | None:
    """The folder, made where it is missing; None where it can't be made or isn't this user's."""
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if is_private(folder, stat.S_ISDIR) else None


def is_private(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether it is there, of this kind itself (no link), and nobody else's to change."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not kind(found.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


@cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="linnet-native-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
