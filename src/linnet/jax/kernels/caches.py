"""Writes into caches `[B, H, S, D]`; what lies outside the cache is not written.

XLA's code for CPUs computes with 16-bit floats in f32, a write into a cache of them included, which
would turn all of it to f32 and back: they are written as the integers with their bits.

`lax.dynamic_update_slice` moves a write that reaches past the end back into range, and indexing
counts negative positions from the end, so both are guarded.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def as_bits(x: jax.Array) -> jax.Array:
    """a 16-bit float as the integer with its bits, anything else as it is"""
    short = x.dtype.itemsize == 2 and jnp.issubdtype(x.dtype, jnp.floating)
    return lax.bitcast_convert_type(x, jnp.uint16) if short else x


def from_bits(x: jax.Array, dtype: Any) -> jax.Array:
    """what as_bits took"""
    return x if x.dtype == dtype else lax.bitcast_convert_type(x, dtype)


def write_span(cache: jax.Array, value: jax.Array, at: jax.Array) -> jax.Array:
    """value [B, H, N, D] at positions at .. at + N - 1 of every row"""
    return from_bits(span_written(as_bits(cache), as_bits(value), at), cache.dtype)


def span_written(cache: jax.Array, value: jax.Array, at: jax.Array) -> jax.Array:
    """write_span on dtypes that XLA moves as they are"""
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
    new = as_bits(value[:, :, 0])
    return from_bits(
        as_bits(cache).at[rows, :, at].set(new, mode="drop", unique_indices=True), cache.dtype
    )


def write_slots(cache: jax.Array, value: jax.Array, slots: jax.Array, at: jax.Array) -> jax.Array:
    """value [M, H, N, D] at positions at .. at + N - 1 of rows `slots`, which are distinct"""
    rows = past_the_end(slots, cache.shape[0])[:, None]
    places = past_the_end(jnp.asarray(at, jnp.int64) + jnp.arange(value.shape[2]), cache.shape[2])
    new = as_bits(value.swapaxes(1, 2))
    return from_bits(as_bits(cache).at[rows, :, places].set(new, mode="drop"), cache.dtype)


def write_tokens(cache: jax.Array, value: jax.Array, rows: jax.Array, at: jax.Array) -> jax.Array:
    """value [1, H, P, D], token p at position at[p] of row rows[p]"""
    rows, at = past_the_end(rows, cache.shape[0]), past_the_end(at, cache.shape[2])
    new = as_bits(value[0].swapaxes(0, 1))
    return from_bits(as_bits(cache).at[rows, :, at].set(new, mode="drop"), cache.dtype)
