"""Products with a layer's weight `[Out, In]`, sums in f32."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

FUSED_ROW = 16 * 1024  # bytes of an f32 row below which XLA reads a weight while it multiplies


def row_product(x: jax.Array, weight: jax.Array) -> jax.Array:
    """one row [1, In] by weight^T, in f32. XLA's code for CPUs would first make a copy of the
    weight in f32, or of an element of a stack: not for a short row by a transposed weight, nor
    for two rows in bf16"""
    if 4 * x.shape[1] < FUSED_ROW:
        return jnp.matmul(x, weight.T, preferred_element_type=jnp.float32)
    rows = x if x.dtype == jnp.float32 else jnp.pad(x, ((0, 1), (0, 0)))
    return jnp.einsum("ni,oi->no", rows, weight, preferred_element_type=jnp.float32)[:1]


def linear_rows(x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """x weight^T + bias over the last axis, rounded once"""
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    if bias is None and rows.shape[0] == 1 and 4 * x.shape[-1] < FUSED_ROW:
        product = rows @ weight.T
    elif rows.shape[0] == 1:
        product = row_product(rows, weight)
    else:
        product = jnp.einsum("ni,oi->no", rows, weight, preferred_element_type=jnp.float32)
    if bias is not None:
        product = product + bias.astype(jnp.float32)
    return product.astype(x.dtype).reshape(*x.shape[:-1], weight.shape[0])
