"""Opening compiled objects."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from linnet.diagnostics.escape import escape_text
from linnet.native.errors import NativeError


def open_object(path: Path) -> Any:
    """A compiled object, in this process. Raises `NativeError` where the system refuses it."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise cannot_load(path, str(error)) from None


def symbol(library: Any, name: str, path: Path) -> Any:
    """A function of an object. Raises `NativeError` where it has none of that name."""
    try:
        return getattr(library, name)
    except AttributeError:
        raise cannot_load(path, f"it has no `{name}`") from None


def cannot_load(path: Path, reason: str) -> NativeError:
    return NativeError(
        f"the compiled code in `{escape_text(str(path), 300)}` cannot be loaded "
        f"({escape_text(reason, 300)}): remove that file, which is then compiled again, or name "
        "another folder with LINNET_CACHE or another compiler with CXX"
    )
