"""What JAX has no exact way to do."""

from __future__ import annotations

from linnet.backends.limits import Limit

LIMITS: tuple[Limit, ...] = (
    Limit(
        "while",
        frozenset(),
        "a `while` whose condition changes state",
        "the condition of `lax.while_loop` gives nothing but its answer",
        "change the state in the loop's body",
    ),
)
