"""Which optional parameters a model without weights has."""

from __future__ import annotations

from collections.abc import Collection

from linnet.diagnostics.escape import escape_text
from linnet.passes import Binding


def present_paths(binding: Binding, present: Collection[str]) -> frozenset[str]:
    """The paths of a model without weights: all but the optional ones that `present` leaves out.
    Raises `ValueError` for names of none."""
    optional = {p.path for p in binding.params if p.optional}
    if isinstance(present, str) or not isinstance(present, Collection):
        raise ValueError(f"`present` is a list of paths, not {escape_text(repr(present), 80)}")
    unknown = [path for path in present if path not in optional]
    if unknown:
        named = escape_text(str(unknown[0]), 80)
        known = ", ".join(sorted(optional)[:20]) or "none"
        raise ValueError(f"`present` names `{named}`, which is no optional parameter; the optional "
                         f"ones: {known}")  # fmt: skip
    return frozenset(p.path for p in binding.params) - (optional - set(present))
