"""Arithmetic on floats as Linnet means it, where JAX means something else."""

from __future__ import annotations

import jax
from jax import lax


def rounded(product: jax.Array) -> jax.Array:
    """the product as it is, which the compiler cannot round together with a sum"""
    made = jax.custom_jvp(apart)
    made.defjvps(lambda slope, result, given: slope)
    return made(product)


def apart(x: jax.Array) -> jax.Array:
    bits = lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}")
    nothing = bits * (bits + 1) & 1  # one of both is even, which no compiler knows
    return lax.bitcast_convert_type(bits ^ nothing, x.dtype)
