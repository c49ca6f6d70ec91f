"""Which optional parameters a model without weights has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from linnet.diagnostics.escape import escape_text
from linnet.weights.manifest import Manifest

_LISTED = 20


def present_paths(manifest: Manifest, present: Collection[Any]) -> frozenset[str]:
    """The paths of a model without weights: all but the optional ones that `present` leaves out.

    Raises `ValueError` for names of no optional parameter, and for a part of an optional block
    without all that the block needs.
    """
    if isinstance(present, str) or not isinstance(present, Collection):
        raise ValueError(f"`present` is a list of paths, not {escape_text(repr(present), 80)}")
    optional = {p.path for p in manifest.params if p.optional or p.within}
    for path in present:
        if not isinstance(path, str) or path not in optional:
            known = listed(optional) or "it has none"
            raise ValueError(f"`present` names {listed([path])}, which is no optional parameter "
                             f"of the model ({known})")  # fmt: skip
    there = frozenset(present)
    blocks = {p.within for p in manifest.params if p.within}
    for block in sorted(b for b in blocks if any(path.startswith(f"{b}.") for path in there)):
        missing = [
            p.path for p in manifest.params
            if p.within == block and not p.optional and p.path not in there
        ]  # fmt: skip
        if missing:
            raise ValueError(f"`present` names parts of `{block}` without {listed(missing)}, which "
                             "it needs")  # fmt: skip
    return frozenset(p.path for p in manifest.params if p.path not in optional) | there


def listed(names: Iterable[object]) -> str:
    """Names of a message, the first of many."""
    found = [f"`{escape_text(str(name), 80)}`" for name in names]
    more = len(found) - _LISTED
    return ", ".join(sorted(found)[:_LISTED]) + (f" and {more} more" if more > 0 else "")
