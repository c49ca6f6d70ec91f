"""The meaning of operations that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.ir.semantics.model import Array, Call, integer, meaning


@meaning("broadcast")
def _broadcast(call: Call) -> Any:
    x, to = call.operands[0], call.result.shape
    shape = [1] * len(to)
    for extent, axis in zip(x.shape, call.attrs["axes"], strict=True):
        shape[axis] = extent
    if any(have not in (1, want) for have, want in zip(shape, to, strict=True)):
        raise call.error(f"extents {list(shape)} do not repeat to {list(to)}")
    return np.broadcast_to(np.reshape(x, shape), to)


@meaning("reshape")
def _reshape(call: Call) -> Any:
    x, to = call.operands[0], call.result.shape
    if x.size != int(np.prod(to, dtype=np.int64)):
        raise call.error(f"{x.size} elements do not fill {list(to)}")
    return np.reshape(x, to)


@meaning("permute")
def _permute(call: Call) -> Any:
    return np.transpose(call.operands[0], call.attrs["order"])


@meaning("concat")
def _concat(call: Call) -> Any:
    return np.concatenate(call.operands, axis=call.attrs["axis"])


@meaning("slice")
def _slice(call: Call) -> Any:
    x = call.operands[0]
    places: list[slice] = []
    for axis, bound in enumerate(call.attrs["bounds"]):
        if bound is None:
            places.append(slice(None))
            continue
        start, stop, step = map(integer, bound)
        # With a step a slice may begin that much past its end: then it is empty.
        if not (0 <= start < stop + step and 0 <= stop <= x.shape[axis]) or step < 1:
            raise call.error(
                f"the slice {start}:{stop}:{step} leaves an axis of extent {x.shape[axis]}"
            )
        places.append(slice(start, stop, step))
    return x[tuple(places)]


@meaning("gather")
def _gather(call: Call) -> Any:
    x, indices = call.operands[0], call.operands[1:]
    rank = len(call.result.shape)
    if x.ndim == 0:
        return x
    check = 0 not in call.result.shape
    places: list[Array] = []
    for axis, (how, number) in enumerate(call.attrs["source"]):
        extent = x.shape[axis]
        if how == "axis":
            place = _along(np.arange(extent), (number,), rank)
        else:
            index = indices[number]
            if check:
                _check_range(call, index, extent)
            place = _along(index.astype(np.int64), call.attrs["index_axes"][number], rank)
        places.append(place)
    if not check:
        return np.empty(call.result.shape, x.dtype)
    return np.broadcast_to(x[tuple(places)], call.result.shape)


def _along(index: Array, axes: tuple[int, ...], rank: int) -> Array:
    """`index`, whose axes are the result's `axes`, with extent 1 at every other axis."""
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    shape = [1] * rank
    for k in order:
        shape[axes[k]] = index.shape[k]
    return np.reshape(np.transpose(index, order), shape)


def _check_range(call: Call, index: Array, extent: int) -> None:
    outside = (index < 0) | (index >= extent)
    if outside.any():
        first = int(index[outside].flat[0]) if index.ndim else int(index)
        raise call.error(f"index {first} is outside an axis of extent {extent}")
