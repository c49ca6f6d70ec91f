"""Arithmetic as Linnet means it, where JAX means something else."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def int_divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """a / b truncated toward zero; the smallest integer by -1 wraps to itself"""
    return lax.div(*jnp.broadcast_arrays(a, b))


def int_remainder(a: jax.Array, b: jax.Array) -> jax.Array:
    """a - b * (a / b), with the sign of a"""
    return lax.rem(*jnp.broadcast_arrays(a, b))


def shift_left(a: jax.Array, b: jax.Array) -> jax.Array:
    """a << b, 0 for b outside 0 .. width - 1"""
    return lax.shift_left(*jnp.broadcast_arrays(a, b))


def shift_right(a: jax.Array, b: jax.Array) -> jax.Array:
    """a >> b, 0 or -1 for b outside 0 .. width - 1"""
    shift = lax.shift_right_arithmetic if a.dtype.kind == "i" else lax.shift_right_logical
    return shift(*jnp.broadcast_arrays(a, b))


def to_integer(x: jax.Array, dtype: Any) -> jax.Array:
    """truncated toward zero; the nearest value where it lies outside, 0 for NaN"""
    x = x.astype(jnp.float32) if x.dtype.itemsize < 4 else x
    info = jnp.iinfo(dtype)
    low, high = float(info.min), float(info.max)  # as integers they may not fit JAX's own
    inside = jnp.where((x > low) & (x < high), x, 0).astype(dtype)
    inside = jnp.where(x >= high, jnp.array(info.max, dtype), inside)
    return jnp.where(x <= low, jnp.array(info.min, dtype), inside)


def divide(a: Any, b: Any) -> jax.Array:
    """a / b rounded once: from a divisor it sees to be spread XLA makes a reciprocal"""
    a, b = jnp.broadcast_arrays(a, b)
    return a / lax.optimization_barrier(b)


def line_up(x: jax.Array, labels: list[int], order: list[int]) -> jax.Array:
    """x, whose axes carry `labels`, with an axis for each label of `order`"""
    own = [label for label in order if label in labels]
    x = x.transpose([labels.index(label) for label in own])
    return x[tuple(slice(None) if label in labels else None for label in order)]
