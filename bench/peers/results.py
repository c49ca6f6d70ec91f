"""The measurements so far, in one JSON file."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any


def read(path: Path) -> list[dict[str, Any]]:
    """All records, oldest first; none where there is no file."""
    return list(json.loads(path.read_text("utf-8"))["records"]) if path.exists() else []


def append(path: Path, record: dict[str, Any]) -> None:
    """Add one record; the file is replaced as a whole."""
    records = [*read(path), record | {"machine": machine()}]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"records": records}, indent=1) + "\n", "utf-8")
    partial.replace(path)


def machine() -> str:
    """The processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
