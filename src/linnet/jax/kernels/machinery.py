"""What generated modules need around their arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def put(tree: Any, value: Any, step: Any, *rest: Any) -> Any:
    """`tree` with `value` at the end of the steps, names of fields or numbers of elements"""
    if isinstance(step, str):
        inner = put(getattr(tree, step), value, *rest) if rest else value
        return tree._replace(**{step: inner})
    inner = put(element(tree, step), value, *rest) if rest else value
    if type(tree) is tuple:
        return (*tree[:step], inner, *tree[step + 1 :])
    return jax.tree.map(lambda a, b: lax.dynamic_update_index_in_dim(a, b, step, 0), tree, inner)


def element(blocks: Any, number: Any) -> Any:
    """one of several blocks, in a tuple or stacked along a first axis"""
    if type(blocks) is tuple:
        return blocks[number]
    return jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, number, keepdims=False), blocks)


def numbered(blocks: Any, start: int = 0, stop: int | None = None) -> Any:
    """stacked blocks from `start` to `stop` with their numbers, as `lax.scan` takes them"""
    blocks = jax.tree.map(lambda a: a[start:stop], blocks)
    return start + jnp.arange(jax.tree.leaves(blocks)[0].shape[0]), blocks


def padded(x: jax.Array, *axes: int) -> jax.Array:
    """x, with a zero along each of the axes that has no elements: one can be looked up then"""
    for axis in axes:
        if x.shape[axis] == 0:
            x = jnp.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
    return x


def extreme(x: jax.Array, kind: str, axes: int | tuple[int, ...], place: str) -> jax.Array:
    """the max or min of x over axes that may have no elements"""
    if x.size:
        return getattr(x, kind)(axes)
    found = jnp.zeros_like(x.any(axes), dtype=x.dtype)
    if found.size:
        raise ValueError(f"the {kind} of no elements has no value at {place}")
    return found


def optional(value: Any, zeros: Any) -> Any:
    """a parameter that may be missing as the pair that an optional is"""
    return (False, zeros) if value is None else (True, value)


def match_optional(
    pair: Any, some: Callable[..., Any], none: Callable[..., Any], *state: Any
) -> Any:
    """some(value, *state) where there is one, else none(*state)"""
    present, value = pair
    if isinstance(present, bool):
        return some(value, *state) if present else none(*state)
    return lax.cond(present, some, lambda _, *rest: none(*rest), value, *state)
