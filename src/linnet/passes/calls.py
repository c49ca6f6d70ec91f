"""Leading calls to other functions, everything else left as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from linnet.ir import Function, Op, Region

Namer = Callable[[str], str]


def retarget(function: Function, name_of: Namer) -> Function:
    """The function with `name_of(callee)` called instead, in its gradient too."""
    grad = function.grad
    if grad is not None:
        grad = replace(grad, body=retarget_region(grad.body, name_of))
    return replace(function, body=retarget_region(function.body, name_of), grad=grad)


def retarget_region(region: Region, name_of: Namer) -> Region:
    def op(old: Op) -> Op:
        if old.kind == "call":
            callee = name_of(old.attrs["callee"])
            return replace(old, attrs=MappingProxyType({**old.attrs, "callee": callee}))
        if not old.regions:
            return old
        return replace(old, regions=tuple(retarget_region(r, name_of) for r in old.regions))

    return Region(region.params, tuple(map(op, region.ops)), region.results)
