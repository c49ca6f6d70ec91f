"""Writes into caches `[B, H, S, D]`; what lies outside the cache is not written.

`lax.dynamic_update_slice` moves a write that reaches past the end back into range, and indexing
counts negative positions from the end, so both are guarded.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def write_span(cache: jax.Array, value: jax.Array, at: jax.Array) -> jax.Array:
    """value [B, H, N, D] at positions at .. at + N - 1 of every row"""
    size, count = cache.shape[2], value.shape[2]
    window = min(size, count)
    if cache.size == 0 or value.size == 0:
        return cache
    at = jnp.asarray(at, jnp.int64)
    start = jnp.clip(at, 0, size - window)
    old = lax.dynamic_slice_in_dim(cache, start, window, 2)
    source = start - at + jnp.arange(window)  # which of the value's positions goes where
    inside = ((source >= 0) & (source < count))[:, None]
    new = value if count == 1 else jnp.take(value, jnp.clip(source, 0, count - 1), axis=2)
    return lax.dynamic_update_slice_in_dim(cache, jnp.where(inside, new, old), start, 2)


def past_the_end(index: jax.Array, size: int) -> jax.Array:
    """the index, one that is negative led out of range on the other side"""
    return jnp.where(index < 0, size, index)


def write_rows(cache: jax.Array, value: jax.Array, at: jax.Array) -> jax.Array:
    """value [B, H, 1, D], row b at its own position at[b]"""
    rows = jnp.arange(cache.shape[0])
    at = past_the_end(at, cache.shape[2])
    return cache.at[rows, :, at].set(value[:, :, 0], mode="drop", unique_indices=True)


def write_slots(cache: jax.Array, value: jax.Array, slots: jax.Array, at: jax.Array) -> jax.Array:
    """value [M, H, N, D] at positions at .. at + N - 1 of rows `slots`, which are distinct"""
    rows = past_the_end(slots, cache.shape[0])[:, None]
    places = past_the_end(jnp.asarray(at, jnp.int64) + jnp.arange(value.shape[2]), cache.shape[2])
    return cache.at[rows, :, places].set(value.swapaxes(1, 2), mode="drop")


def write_tokens(cache: jax.Array, value: jax.Array, rows: jax.Array, at: jax.Array) -> jax.Array:
    """value [1, H, P, D], token p at position at[p] of row rows[p]"""
    rows, at = past_the_end(rows, cache.shape[0]), past_the_end(at, cache.shape[2])
    return cache.at[rows, :, at].set(value[0].swapaxes(0, 1), mode="drop")
