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
    optional = optional_paths(manifest)
    for path in present:
        if not isinstance(path, str) or path not in optional:
            raise ValueError(not_optional("`present`", path, optional))
    there = frozenset(present)
    for block, missing in lacking(manifest, there).items():
        raise ValueError(f"`present` names parts of `{block}` without {listed(missing)}, which it "
                         "needs")  # fmt: skip
    return frozenset(p.path for p in manifest.params if p.path not in optional) | there


def check_present(weights: Any, present: Any) -> None:
    """Raises `ValueError` for `present` beside weights, which say themselves what is there."""
    if weights is not None and present:
        raise ValueError("`present` is for a model without weights: `weights` and `bindings` say "
                         "which parameters are there")  # fmt: skip


def optional_paths(manifest: Manifest) -> frozenset[str]:
    """Parameters that may be absent: their own `?`, or that of a block around them."""
    return frozenset(p.path for p in manifest.params if p.optional or p.within)


def not_optional(where: str, path: object, optional: Collection[str]) -> str:
    """The message for a path, named `where`, that is none of the optional ones."""
    known = listed(optional) or "it has none"
    return f"{where} names {listed([path])}, which is no optional parameter of the model ({known})"


def lacking(manifest: Manifest, there: Collection[str]) -> dict[str, list[str]]:
    """What optional blocks need and is not among the paths that are there, of those that have a
    part among them."""
    blocks = {p.within for p in manifest.params if p.within}
    found: dict[str, list[str]] = {}
    for block in sorted(b for b in blocks if any(path.startswith(f"{b}.") for path in there)):
        needed = (p.path for p in manifest.params if p.within == block and not p.optional)
        missing = [path for path in needed if path not in there]
        if missing:
            found[block] = missing
    return found


def listed(names: Iterable[object]) -> str:
    """Names of a message, the first of many."""
    found = [f"`{escape_text(str(name), 80)}`" for name in names]
    more = len(found) - _LISTED
    return ", ".join(sorted(found)[:_LISTED]) + (f" and {more} more" if more > 0 else "")
