"""What a caller or the environment asks of a model, checked before anything is compiled."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from linnet.backends.present import listed
from linnet.diagnostics.escape import escape_text
from linnet.native.errors import NativeError
from linnet.native.runtime.packing import FORMATS, WeightsFormat

MOST_THREADS = 1024


def checked_threads(threads: Any) -> int | None:
    """The number of threads, None for the default. Raises `ValueError`, and `NativeError` where
    the default is what `LINNET_THREADS` says and that is no such number."""
    if threads is None:
        _check_variable()
        return None
    try:
        count = operator.index(threads)
    except TypeError:
        count = 0
    if isinstance(threads, bool) or not 1 <= count <= MOST_THREADS:
        shown = escape_text(repr(threads), 60)
        raise ValueError(f"threads is an integer from 1 to {MOST_THREADS}, not {shown}")
    return count


def _check_variable() -> None:
    said = os.environ.get("LINNET_THREADS", "")
    plain = said.isascii() and said.isdigit() and len(said) < 10
    if said and not (plain and 1 <= int(said) <= MOST_THREADS):
        raise NativeError(
            f"LINNET_THREADS is an integer from 1 to {MOST_THREADS}, not `{escape_text(said, 60)}`"
        )


def check_generics(generics: Any) -> None:
    """Raises `ValueError` for what is no mapping."""
    if generics is not None and not isinstance(generics, Mapping):
        kind = type(generics).__name__
        raise ValueError(f"generics is a dict of values by name, not a {kind}")


def check_format(wanted: Any) -> None:
    """Raises `ValueError` for a format that there is not, or no pattern."""
    if wanted is None:
        return
    if not isinstance(wanted, str | Mapping):
        raise ValueError(
            f"weights_format is one of {', '.join(FORMATS)}, or a dict of these by path patterns, "
            f"not {escape_text(repr(wanted), 60)}"
        )
    for pattern, name in wanted.items() if isinstance(wanted, Mapping) else [("*", wanted)]:
        if not isinstance(pattern, str):
            shown = escape_text(repr(pattern), 60)
            raise ValueError(f"weights_format takes patterns of paths, not {shown}")
        if not isinstance(name, str) or name not in FORMATS:
            shown = escape_text(repr(name), 60)
            raise ValueError(f"weights_format is one of {', '.join(FORMATS)}, not {shown}")


def check_patterns(wanted: WeightsFormat, paths: Collection[str]) -> None:
    """Raises `ValueError` for patterns that fit no parameter."""
    if not isinstance(wanted, Mapping):
        return
    idle = [p for p in wanted if p != "*" and not any(fnmatchcase(path, p) for path in paths)]
    if idle:
        raise ValueError(f"weights_format names {listed(idle)}, which {_no_parameter(paths)}")


def _no_parameter(paths: Collection[str]) -> str:
    known = f"such as {listed(sorted(paths)[:3])}" if paths else "it has none"
    return f"is no parameter of the model ({known})"
