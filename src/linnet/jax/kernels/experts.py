"""Products with chosen experts, sums in f32: a few one by one, many sorted by expert, so that each
chosen expert's weight is read once and no other's is."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from linnet.jax.kernels.caches import as_bits, from_bits
from linnet.jax.kernels.linear import row_product

FEW = 64  # products that are written out one by one
SPREAD = 8  # products an expert up to which XLA is faster row by row, in f32


def expert_weight(weight: jax.Array, expert: Any) -> jax.Array:
    """one expert's matrix. 16-bit floats are looked up as integers, or XLA would make f32 of all
    experts before a loop that looks up one a turn"""
    return from_bits(
        lax.dynamic_index_in_dim(as_bits(weight), expert, keepdims=False), weight.dtype
    )


def one_product(row: jax.Array, weight: jax.Array, expert: Any) -> jax.Array:
    return row_product(row[None], expert_weight(weight, expert))[0]


def tile_rows(count: int, experts: int) -> int:
    """how many rows of one expert are multiplied together"""
    return max(8, min(128, 1 << (count // experts).bit_length()))


def over_tiles(experts: jax.Array, tile: int, number: int, step: Any, first: Any) -> Any:
    """step(carry, at, stop, expert) for each run of at most `tile` equals in sorted `experts`"""
    count = experts.shape[0]
    ends = jnp.searchsorted(experts, jnp.arange(number, dtype=jnp.int32), side="right")
    ends = ends.astype(jnp.int32)  # a gradient is traced under the user's own settings

    def body(carry: Any) -> Any:
        at, held = carry
        stop = jnp.minimum(ends[experts[at]], at + tile)
        return stop, step(held, at, stop, experts[at])

    return lax.while_loop(lambda carry: carry[0] < count, body, (jnp.int32(0), first))[1]


def sorted_products(x: jax.Array, weight: jax.Array, experts: jax.Array) -> jax.Array:
    """row n of x [N, In] by expert experts[n], which rise: [N, Out]"""
    count, tile = x.shape[0], tile_rows(x.shape[0], weight.shape[0])
    padded = jnp.pad(x, ((0, tile), (0, 0)))

    def step(made: jax.Array, at: Any, stop: Any, expert: Any) -> jax.Array:
        rows = lax.dynamic_slice_in_dim(padded, at, tile)
        part = jnp.einsum(
            "ni,oi->no", rows, expert_weight(weight, expert), preferred_element_type=jnp.float32
        )  # rows past the expert's own are written again by the next step
        return lax.dynamic_update_slice_in_dim(made, part, at, 0)

    first = jnp.zeros((count + tile, weight.shape[1]), jnp.float32)
    return over_tiles(experts, tile, weight.shape[0], step, first)[:count]


def products(x: jax.Array, weight: jax.Array, experts: jax.Array, copies: int) -> jax.Array:
    """row n // copies of x by expert experts[n]: [N, Out] in f32"""
    count = experts.shape[0]
    if count == 0 or weight.shape[0] == 0:
        return jnp.zeros((count, weight.shape[1]), jnp.float32)
    experts = jnp.clip(experts, 0, weight.shape[0] - 1).astype(jnp.int32)
    if count <= FEW:
        return jnp.stack([one_product(x[n // copies], weight, experts[n]) for n in range(count)])
    if x.dtype == jnp.float32 and count <= SPREAD * weight.shape[0]:
        rows = jnp.repeat(x, copies, axis=0)
        return lax.map(lambda at: one_product(at[0], weight, at[1]), (rows, experts))
    order = jnp.argsort(experts)
    made = sorted_products(x[order // copies], weight, experts[order])
    return jnp.zeros_like(made).at[order].set(made, unique_indices=True)


def products_forward(x: jax.Array, weight: jax.Array, experts: jax.Array, copies: int) -> Any:
    kept = (x, weight, jnp.clip(experts, 0, max(weight.shape[0], 1) - 1).astype(jnp.int32))
    return products(x, weight, experts, copies), kept


def products_backward(copies: int, kept: Any, slope: jax.Array) -> Any:
    """a tile at a time, as forward; the weight's gradient is written for chosen experts alone"""
    x, weight, experts = kept
    count, number = experts.shape[0], weight.shape[0]
    to_x = products(slope, weight.swapaxes(1, 2).astype(jnp.float32), experts, 1)
    to_x = to_x.reshape(x.shape[0], copies, x.shape[1]).sum(1).astype(x.dtype)
    to_weight = jnp.zeros(weight.shape, jnp.float32)
    if count and number:
        tile = tile_rows(count, number)
        order = jnp.argsort(experts)
        rows = jnp.pad(x[order // copies].astype(jnp.float32), ((0, tile), (0, 0)))
        slopes = jnp.pad(slope[order], ((0, tile), (0, 0)))

        def step(made: jax.Array, at: Any, stop: Any, expert: Any) -> jax.Array:
            own = (at + jnp.arange(tile) < stop)[:, None]
            tile_slopes = jnp.where(own, lax.dynamic_slice_in_dim(slopes, at, tile), 0)
            part = tile_slopes.T @ lax.dynamic_slice_in_dim(rows, at, tile)
            part = part + expert_weight(made, expert)
            return lax.dynamic_update_index_in_dim(made, part, expert, 0)

        to_weight = over_tiles(experts[order], tile, number, step, to_weight)
    return to_x, to_weight.astype(weight.dtype), None


def differentiable_products() -> Any:
    made = jax.custom_vjp(products, nondiff_argnums=(3,))
    made.defvjp(products_forward, products_backward)
    return made


expert_products = differentiable_products()


def linear_experts(x: jax.Array, weight: jax.Array, experts: jax.Array) -> jax.Array:
    """each row's K inputs [R, K, In] by its K experts: [R, K, Out]"""
    made = expert_products(x.reshape(experts.size, x.shape[2]), weight, experts.reshape(-1), 1)
    return made.astype(x.dtype).reshape(*experts.shape, weight.shape[1])


def linear_experts_shared(x: jax.Array, weight: jax.Array, experts: jax.Array) -> jax.Array:
    """each row's one input [R, In] by its K experts: [R, K, Out]"""
    made = expert_products(x, weight, experts.reshape(-1), max(experts.shape[1], 1))
    return made.astype(x.dtype).reshape(*experts.shape, weight.shape[1])


def combine_experts(
    x: jax.Array, weight: jax.Array, experts: jax.Array, weights: jax.Array
) -> jax.Array:
    """each row's K inputs by its K experts, summed by weight: [R, Out]"""
    made = expert_products(x.reshape(experts.size, x.shape[2]), weight, experts.reshape(-1), 1)
    made = made.reshape(*experts.shape, weight.shape[1])
    return jnp.einsum("rk,rko->ro", weights.astype(jnp.float32), made).astype(x.dtype)


def top_places(x: jax.Array, count: int) -> jax.Array:
    """the places of the largest values of each row, the lower place first among equals"""
    plain = x.astype(jnp.float32) + 0.0  # no zero below another
    return lax.top_k(plain, count)[1].astype(jnp.int64)
