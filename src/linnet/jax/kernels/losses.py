"""Log-probabilities over a vocabulary by blocks of rows: the whole logits are never held."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

LOGIT_BLOCK = 1 << 22  # logits held at a time


def head_blocks(hidden: jax.Array, weight: jax.Array, *more: jax.Array) -> list[jax.Array]:
    """the arrays' rows in blocks, those that are lacking in the last one zero"""
    count, size = hidden.shape[0], max(1, LOGIT_BLOCK // weight.shape[0])
    blocks = -(-count // size)
    size = -(-count // blocks)  # even ones
    lacking = blocks * size - count
    arrays = [jnp.pad(a, ((0, lacking), *(((0, 0),) * (a.ndim - 1)))) for a in (hidden, *more)]
    return [a.reshape(blocks, size, *a.shape[1:]) for a in arrays]


def block_logits(rows: jax.Array, weight: jax.Array) -> jax.Array:
    return jnp.einsum("nh,vh->nv", rows, weight, preferred_element_type=jnp.float32)


def target_scores(hidden: jax.Array, weight: jax.Array, targets: jax.Array) -> Any:
    """log p(targets[n]) under softmax(hidden[n] weight^T), and each row's logsumexp"""
    if hidden.shape[0] == 0:
        return (jnp.zeros(0, jnp.float32),) * 2

    def part(block: Any) -> Any:
        rows, own = block
        logits = block_logits(rows, weight)
        total = jax.nn.logsumexp(logits, axis=-1)
        return jnp.take_along_axis(logits, own[:, None], axis=1)[:, 0] - total, total

    scores, totals = lax.map(part, tuple(head_blocks(hidden, weight, targets)))
    return tuple(x.reshape(-1)[: hidden.shape[0]] for x in (scores, totals))


def scores_alone(hidden: jax.Array, weight: jax.Array, targets: jax.Array) -> jax.Array:
    return target_scores(hidden, weight, targets)[0]


def scores_forward(hidden: jax.Array, weight: jax.Array, targets: jax.Array) -> Any:
    scores, totals = target_scores(hidden, weight, targets)
    return scores, (hidden, weight, targets.astype(jnp.int32), totals)


def scores_backward(kept: Any, slope: jax.Array) -> Any:
    """each block's logits are made again"""
    hidden, weight, targets, totals = kept
    if hidden.shape[0] == 0:
        return jnp.zeros_like(hidden), jnp.zeros_like(weight), None
    wide = weight.astype(jnp.float32)

    def part(to_weight: jax.Array, block: Any) -> Any:
        rows, own, total, given = block
        logits = block_logits(rows, weight)
        slopes = -jnp.exp(logits - total[:, None]) * given[:, None]
        slopes = slopes.at[jnp.arange(rows.shape[0]), own].add(given)
        return to_weight + slopes.T @ rows.astype(jnp.float32), slopes @ wide

    blocks = tuple(head_blocks(hidden, weight, targets, totals, slope))
    to_weight, to_hidden = lax.scan(part, jnp.zeros(weight.shape, jnp.float32), blocks)
    to_hidden = lax.collapse(to_hidden, 0, 2)[: hidden.shape[0]]
    return to_hidden.astype(hidden.dtype), to_weight.astype(weight.dtype), None


def differentiable_scores() -> Any:
    made = jax.custom_vjp(scores_alone)
    made.defvjp(scores_forward, scores_backward)
    return made


linear_log_probs = differentiable_scores()
