"""Names that generated JAX modules use themselves, and fields of their named tuples."""

from __future__ import annotations

from linnet.backends.names import attribute

STATE = "state"
BLOCK = "block"
MODULE_NAMES = frozenset({BLOCK, STATE, "jit"})


def field(name: str) -> str:
    """The named tuple's field that holds member `name`; different for different names.

    Named tuples allow no keyword and no leading underscore.
    """
    safe = attribute(name)
    return f"f{safe}" if safe.lstrip("f").startswith("_") else safe
