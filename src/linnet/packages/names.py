"""Names: what an identifier is, and which known name a misspelt one is nearest to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MAX_CANDIDATES = 1000
_MAX_LENGTH = 80


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None when none is close.

    Bounded in candidates and length, since both may come from a stranger's file.
    """
    if len(name) > _MAX_LENGTH:
        return None
    candidates = (each for each in known if len(each) <= _MAX_LENGTH and each != name)
    found = get_close_matches(name, islice(candidates, _MAX_CANDIDATES), n=1, cutoff=0.6)
    return found[0] if found else None
