"""Scaled dot-product attention over heads `[B, H, S, D]`, dense, up to a position, over pages.

A query that sees no key gets the plain mean of all values: its scores are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from linnet.jax.kernels.caches import as_bits, from_bits


def attend(
    q: jax.Array, k: jax.Array, v: jax.Array, scale: Any, mask: jax.Array | None = None
) -> jax.Array:
    """softmax(scale * q k^T) v in f32; `mask` lines up with scores [B, Hk, H / Hk, Q, K]"""
    if q.size == 0:  # without heads there are no groups of them
        return q
    rows, heads, queries, width = q.shape
    groups = k.shape[1]
    grouped = q.reshape(rows, groups, heads // groups, queries, width)
    scores = key_scores(grouped, k) * scale
    if mask is not None:
        scores = jnp.where(mask, scores, -1e30)
    mixed = weighted_values(jax.nn.softmax(scores, axis=-1), v)
    return mixed.astype(q.dtype).reshape(q.shape)


def key_scores(q: jax.Array, k: jax.Array) -> jax.Array:
    """q [B, Hk, R, Q, D] by k [B, Hk, K, D] in f32. For one query the keys come first: second,
    XLA would copy them to turn them"""
    if q.shape[3] != 1:
        return jnp.einsum("bgrqd,bgkd->bgrqk", q, k, preferred_element_type=jnp.float32)
    scores = jnp.einsum("bgkd,bgrqd->bgkrq", k, q, preferred_element_type=jnp.float32)
    return scores.transpose(0, 1, 3, 4, 2)


def weighted_values(weights: jax.Array, v: jax.Array) -> jax.Array:
    """weights [B, Hk, R, Q, K] in f32 by values [B, Hk, K, D]. By bf16 ones as a sum of two of
    bf16, 16 bits in all: a product with f32 weights would copy the values to f32"""
    if v.dtype != jnp.bfloat16:
        return jnp.einsum("bgrqk,bgkd->bgrqd", weights, v, preferred_element_type=jnp.float32)
    high = weights.astype(v.dtype)
    both = jnp.stack((high, (weights - high.astype(jnp.float32)).astype(v.dtype)), 2)
    mixed = jnp.einsum("bgprqk,bgkd->bgprqd", both, v, preferred_element_type=jnp.float32)
    return mixed[:, :, 0] + mixed[:, :, 1]


def attend_causal(q: jax.Array, k: jax.Array, v: jax.Array, scale: Any) -> jax.Array:
    """query i sees the keys 0 .. i"""
    order = jnp.arange(k.shape[2])
    return attend(q, k, v, scale, order <= order[:, None])


def attend_rows(q: jax.Array, k: jax.Array, v: jax.Array, scale: Any, mask: jax.Array) -> jax.Array:
    """a mask [B, Q, K] for each sequence"""
    return attend(q, k, v, scale, mask[:, None, None])


SHORTEST = 128  # keys below which a part of the cache is not worth reading alone


def read_lengths(size: int) -> list[int]:
    """the lengths that a cache of `size` keys is read at: every shape is compiled"""
    lengths, length = [], SHORTEST
    while length < size:
        lengths.append(length)
        length *= 2
    return [*lengths, size]


def attend_seen(
    q: jax.Array, k: jax.Array, v: jax.Array, scale: Any, last: jax.Array,
    mask: Callable[..., jax.Array],
) -> jax.Array:  # fmt: skip
    """attend under mask(last, keys' positions), which hides every key past the largest of `last`;
    of the cache only a part is read that holds those. A query that sees no key needs them all."""
    lengths, dtype = read_lengths(k.shape[2]), k.dtype

    def part(length: int, q: Any, k: Any, v: Any, last: Any) -> jax.Array:
        keys, values = (from_bits(x[:, :, :length], dtype) for x in (k, v))
        return attend(q, keys, values, scale, mask(last, jnp.arange(length)))

    k, v = as_bits(k), as_bits(v)
    if len(lengths) == 1:
        return part(lengths[0], q, k, v, last)
    needed = jnp.where(last.min() < 0, k.shape[2], last.max() + 1)
    which = (needed > jnp.array(lengths[:-1], needed.dtype)).sum()
    return lax.switch(which, [partial(part, length) for length in lengths], q, k, v, last)


def attend_upto(q: jax.Array, k: jax.Array, v: jax.Array, scale: Any, last: Any) -> jax.Array:
    """every query sees the keys 0 .. last"""
    last = jnp.asarray(last, jnp.int64)
    return attend_seen(q, k, v, scale, last, lambda last, keys: keys <= last)


def attend_from(q: jax.Array, k: jax.Array, v: jax.Array, scale: Any, start: Any) -> jax.Array:
    """query i sees the keys 0 .. start + i"""
    last = jnp.asarray(start, jnp.int64) + jnp.arange(q.shape[2])
    return attend_each_upto(q, k, v, scale, last)


def attend_each_upto(
    q: jax.Array, k: jax.Array, v: jax.Array, scale: Any, last: jax.Array
) -> jax.Array:
    """query i sees the keys 0 .. last[i]"""
    if q.size == 0:
        return q
    return attend_seen(q, k, v, scale, last, lambda last, keys: keys <= last[:, None])


def attend_rows_upto(
    q: jax.Array, k: jax.Array, v: jax.Array, scale: Any, last: jax.Array
) -> jax.Array:
    """the queries of sequence b see its keys 0 .. last[b]"""
    if q.size == 0:
        return q
    mask = lambda last, keys: (keys <= last[:, None])[:, None, None, None]  # noqa: E731
    return attend_seen(q, k, v, scale, last, mask)


def attend_with_sinks(
    q: jax.Array, k: jax.Array, v: jax.Array, sinks: jax.Array, scale: Any, mask: jax.Array
) -> jax.Array:
    """attention in which a logit for each query head joins the softmax and is dropped after it"""
    if q.size == 0:  # without heads there are no groups of them
        return q
    rows, heads, queries, width = q.shape
    groups = k.shape[1]
    grouped = q.reshape(rows, groups, heads // groups, queries, width)
    scores = jnp.where(mask[:, None, None], key_scores(grouped, k) * scale, -1e30)
    sink = sinks.astype(jnp.float32).reshape(1, groups, heads // groups, 1, 1)
    peak = jnp.maximum(scores.max(-1, keepdims=True, initial=-jnp.inf), sink)
    powers = jnp.exp(scores - peak)
    weights = powers / (powers.sum(-1, keepdims=True) + jnp.exp(sink - peak))
    mixed = weighted_values(weights, v)
    return mixed.astype(q.dtype).reshape(q.shape)


def page_places(pages: jax.Array, size: int) -> jax.Array:
    """the pool's places of all positions of rows whose pages are given: [..., Pages * size]"""
    places = pages[..., None].astype(jnp.int64) * size + jnp.arange(size)
    return places.reshape(*pages.shape[:-1], pages.shape[-1] * size)


def attend_paged(
    q: jax.Array, k: jax.Array, v: jax.Array, table: jax.Array, positions: jax.Array, scale: Any,
    size: int,
) -> jax.Array:  # fmt: skip
    """one query a row over its positions 0 .. positions[b], which lie in the pages of its row;
    pages past the longest row's are not read"""
    pages = table.shape[1]
    if q.size == 0:
        return q
    counts = [-(-length // size) for length in read_lengths(pages * size)]
    counts = sorted({min(count, pages) for count in counts})

    def part(count: int, q: Any, k: Any, v: Any, table: Any, positions: Any) -> jax.Array:
        seen = jnp.arange(count * size) <= positions[:, None]
        places = jnp.where(seen, page_places(table[:, :count], size), 0)
        keys, values = (x[0][:, places].swapaxes(0, 1) for x in (k, v))
        return attend(q, keys, values, scale, seen[:, None, None, None])

    if len(counts) < 2:
        return part(pages, q, k, v, table, positions)
    needed = jnp.where(positions.min() < 0, pages, positions.max() // size + 1)
    which = (needed > jnp.array(counts[:-1], needed.dtype)).sum()
    return lax.switch(which, [partial(part, count) for count in counts], q, k, v, table, positions)


def attend_paged_prompts(
    q: jax.Array, k: jax.Array, v: jax.Array, table: jax.Array, rows: jax.Array,
    positions: jax.Array, scale: Any, size: int,
) -> jax.Array:  # fmt: skip
    """token p over the positions 0 .. positions[p] of row rows[p]; a row's pages are read once"""
    if q.size == 0:
        return q

    def row(mixed: jax.Array, at: Any) -> tuple[jax.Array, None]:
        number, pages = at
        own = rows == number
        seen = (jnp.arange(pages.shape[0] * size) <= positions[:, None]) & own[:, None]
        places = jnp.where(seen.any(0), page_places(pages, size), 0)
        keys, values = (x[:, :, places] for x in (k, v))
        found = attend(q, keys, values, scale, seen | ~own[:, None])
        found = jnp.where((positions < 0)[:, None], first, found)
        return jnp.where(own[:, None], found, mixed), None

    first = jnp.repeat(v[:, :, :1], q.shape[1] // v.shape[1], axis=1).astype(q.dtype)
    numbers = jnp.arange(table.shape[0], dtype=rows.dtype)
    return lax.scan(row, jnp.zeros_like(q), (numbers, table))[0]
