"""The folder of compiled objects: named by what they were made from, whole or not there at all.

Machine code is loaded from nowhere but a folder that belongs to this user and that nobody else can
write to, and only where it is, byte for byte, what was put there: beside each file lies one with
its checksum. What does not match it, as after a crash or on a failing disk, is made again. Where
there can be no such folder, or it is full, objects live in a temporary one as long as the process.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from linnet.diagnostics.escape import escape_text
from linnet.native.errors import NativeError

Make = Callable[[Path, Path], None]  # makes a file in an empty folder

_MAKING = ".making-"  # what the names of unfinished work begin with
UNFINISHED_SECONDS = 6 * 3600.0
UNUSED_SECONDS = 90 * 24 * 3600.0

SUFFIX = ".dll" if sys.platform == "win32" else ".so"
SUM = ".sum"  # after the name of the file whose checksum it holds
_EXPANDED = re.compile(r"\$\{?(?:ORIGIN|LIB|PLATFORM)")  # by the loaders of Linux and others
_FULL_TEXTS = ("No space left on device", "Disk quota exceeded", "not enough space on the disk")
_LITTLE = 1 << 20  # bytes free, where a compiler that fails may have lacked them


def cache_folder() -> Path:
    """Where objects are kept: below `LINNET_CACHE`, else the platform's cache folder. Raises
    `NativeError` where there is none that the system's loader could take a file from."""
    try:
        return loadable(_cache_folder())
    except RuntimeError as error:
        if type(error) is not RuntimeError:  # what `Path` raises; not what a signal's handler does
            raise
        raise NativeError(
            f"there is no folder for compiled code: {escape_text(str(error), 200)}; "
            "name one with LINNET_CACHE"
        ) from None


def loadable(folder: Path) -> Path:
    """The folder, unless the system's loader would misread its name: raises `NativeError`."""
    text = str(folder)
    problem = None
    if _EXPANDED.search(text) and os.name == "posix":
        problem = "the system's loader reads the `$` in it as a variable"
    elif any("\ud800" <= char <= "\udfff" for char in text):
        problem = "its name is no UTF-8"
    if problem is None:
        return folder
    raise NativeError(
        f"compiled code cannot be loaded from `{escape_text(text, 300)}`, as {problem}: "
        "name another folder with LINNET_CACHE"
    )


def _cache_folder() -> Path:
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
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:40]


def stored_file(name: str, suffix: str = SUFFIX) -> Path | None:
    """The file called `name`, where the folder has it as it was made and nobody else could have
    changed it."""
    folder = cache_folder()
    final = folder / f"{name}{suffix}"
    return _used(final) if is_private(folder, stat.S_ISDIR) and _is_whole(final) else None


def object_file(name: str, make: Make, suffix: str = SUFFIX) -> Path:
    """The object called `name`; `make(folder, file)` makes it in an empty folder when it is not
    there yet. Raises `NativeError` where it can be kept nowhere, and what `make` raises."""
    try:
        return kept_file(name, make, suffix)
    except OSError as error:
        reason = f"`{escape_text(str(cache_folder()), 300)}`: {_said(error)}"
    try:
        final = loadable(_temporary()) / f"{name}{suffix}"
        return final if _is_whole(final) else _made(final, make)
    except OSError as error:
        raise NativeError(
            f"compiled code can be kept neither in {reason}, nor in a temporary folder: "
            f"{_said(error)}; make room, or name other folders with LINNET_CACHE and TMPDIR"
        ) from None


def kept_file(name: str, make: Make, suffix: str = SUFFIX) -> Path:
    """The file called `name` in the cache folder, made when it is not there yet. Raises `OSError`
    where it cannot be kept there."""
    folder = private_folder(cache_folder())
    if folder is None:
        raise PermissionError(errno.EACCES, "it cannot be made, or others may write to it")
    final = folder / f"{name}{suffix}"
    return _used(final) if _is_whole(final) else _made(final, make)


def _said(error: OSError) -> str:
    return escape_text(error.strerror or str(error), 200)


def _made(final: Path, make: Make) -> Path:
    """Makes a file beside its place, and renames it there after its checksum. Two processes that
    make the same at once may leave one's checksum with the other's file: it is made again then."""
    folder = final.parent
    work = Path(tempfile.mkdtemp(prefix=_MAKING, dir=folder))
    try:
        _tidy(folder)
        file, beside = work / final.name, work / f"{final.name}{SUM}"
        make(work, file)
        beside.write_text(_sum(file), encoding="ascii")
        for made in (file, beside):
            made.chmod(0o600)
            _flush(made)
        beside.replace(_sum_of(final))
        file.replace(final)
    except NativeError as error:
        if _is_full(folder, str(error)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final


def _flush(path: Path) -> None:
    """Has the system write a file down: a rename must not outlive what it named."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _is_full(folder: Path, said: str) -> bool:
    """Whether a compiler that failed in the folder lacked room there."""
    if any(text in said for text in _FULL_TEXTS):
        return True
    try:
        return shutil.disk_usage(folder).free < _LITTLE
    except OSError:
        return False


def _sum_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{SUM}")


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(path: Path) -> bool:
    """Whether a file is there, nobody else's to change, and what its checksum says."""
    beside = _sum_of(path)
    if not (is_private(path, stat.S_ISREG) and is_private(beside, stat.S_ISREG)):
        return False
    try:
        return beside.read_bytes() == _sum(path).encode()
    except OSError:
        return False


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
            os.utime(_sum_of(path))
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
