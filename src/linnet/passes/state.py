"""state."""

from __future__ import annotations

from linnet.passes.module import Module


def state(module: Module) -> Module:
    return module
