"""The folder where fetched files lie: each entry appears whole or not at all.

An entry is made in a folder of its own beside its final place and renamed there in one step, so a
reader never sees half of it, and of two processes that fetch the same one wins and both go on.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from linnet.nest.errors import fail, quoted


def cache_root(override: str | Path | None = None) -> Path:
    """`override`, else `LINNET_CACHE`, else the platform's cache folder for `linnet`."""
    if override is not None:
        return Path(override).expanduser().absolute()
    named = os.environ.get("LINNET_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    home = Path.home()
    match sys.platform:
        case "darwin":
            return home / "Library" / "Caches" / "linnet"
        case "win32":
            return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "linnet"
        case _:
            base = Path(os.environ.get("XDG_CACHE_HOME", ""))
            return (base if base.is_absolute() else home / ".cache") / "linnet"


def cached_folder(final: Path, make: Callable[[Path], None]) -> Path:
    """`final`, filled by `make` when it isn't there yet. `make` gets an empty folder to fill."""
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".making-", dir=final.parent))
    except OSError as error:
        where = quoted(str(final.parent))
        fail(
            "E5022",
            f"cannot write to the cache folder {where}: {error.strerror}",
            help="name another one with LINNET_CACHE or --cache-dir",
        )
    try:
        content = work / "content"
        content.mkdir()
        make(content)
        _publish(content, final)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final


def _publish(content: Path, final: Path) -> None:
    try:
        content.rename(final)
    except OSError as error:
        if not final.is_dir():  # otherwise another process was quicker, with the same content
            fail("E5022", f"cannot write {quoted(str(final))}: {error.strerror}")
