"""What C++ has no exact way to do: nothing that Linnet has."""

from __future__ import annotations

from linnet.backends.limits import Limit

LIMITS: tuple[Limit, ...] = ()
