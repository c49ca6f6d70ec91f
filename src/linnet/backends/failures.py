"""Where in a program generated Python code gave up."""

from __future__ import annotations

import linecache
from types import TracebackType


def place_of(traceback: TracebackType | None, framework: str) -> str:
    """The innermost function generated for `framework` in a traceback, as the comment above it
    names it; nothing where compiled code stands in for them."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.startswith(f"<linnet {framework} "):
            above = linecache.getline(code.co_filename, code.co_firstlineno - 1).strip()
            if above.startswith("# "):
                function, _, line = above[2:].partition("  ")
                found = f"`{function}` ({line})" if line else f"`{function}`"
        traceback = traceback.tb_next
    return found
