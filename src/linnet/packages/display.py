"""How a file's path is shown to a person."""

from __future__ import annotations

import os
from pathlib import Path

_MAX_UP = 2


def shown_path(path: Path) -> str:
    """`path` as seen from the working folder when it lies near it, else absolute."""
    absolute = os.fspath(path)
    try:
        relative = os.path.relpath(absolute)
    except (ValueError, OSError):  # another drive, or a working folder that is gone
        return absolute
    ups = Path(relative).parts.count("..")
    return relative if ups <= _MAX_UP and len(relative) <= len(absolute) else absolute
