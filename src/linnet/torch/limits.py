"""What PyTorch has no exact way to do: nothing that Linnet has.

Arithmetic on `u16`, `u32` and `u64`, of which PyTorch has next to none, is carried in `int64`.
"""

from __future__ import annotations

from linnet.backends.limits import Limit

LIMITS: tuple[Limit, ...] = ()
