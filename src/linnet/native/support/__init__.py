"""The C++ headers that generated code includes beside the kernels'."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def header_texts() -> tuple[str, ...]:
    """The headers' texts, in the order of their names."""
    folder = files("linnet.native").joinpath("support/linnet")
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".h")), key=lambda f: f.name)
    return tuple(file.read_text("utf-8") for file in found)
