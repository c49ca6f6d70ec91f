"""The short convolution and the gated delta rule of Gated DeltaNet (Yang et al., 2024), in f32."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def causal_conv(x: jax.Array, history: jax.Array, taps: jax.Array) -> jax.Array:
    """y[b, s, c] = sum_w taps[c, w] * concatenate(history, x)[b, s + w, c]"""
    window = jnp.concatenate((history, x), 1)
    parts = [
        taps[:, w].astype(jnp.float32) * window[:, w : w + x.shape[1]].astype(jnp.float32)
        for w in range(taps.shape[1])
    ]
    return sum(parts[1:], parts[0])


def delta_step(
    q: jax.Array, k: jax.Array, v: jax.Array, decay: jax.Array, beta: jax.Array,
    start: jax.Array, scale: Any,
) -> jax.Array:  # fmt: skip
    """one token: the output [B, 1, Hv, V], then the state with its key axis second

    Query and key read the old state together: after keep * state + k (x) change the output is
    keep * (q . state) + (q . k) change.
    """
    group = v.shape[1] // k.shape[1]
    query, key = (jnp.repeat(x.astype(jnp.float32), group, axis=1) for x in (q, k))
    keep = jnp.exp(decay)[..., None]
    read = jnp.einsum("bhnk,bhkv->bhnv", jnp.stack((query, key), 2), start)
    change = beta[..., None] * (v.astype(jnp.float32) - keep * read[:, :, 1])
    out = keep * read[:, :, 0] + (query * key).sum(-1, keepdims=True) * change
    after = keep[..., None] * start + key[..., None] * change[:, :, None]
    return jnp.concatenate((scale * out[:, None], after.swapaxes(1, 2)), 1)


DELTA_CHUNK = 64


def delta_rule(
    q: jax.Array, k: jax.Array, v: jax.Array, decay: jax.Array, beta: jax.Array,
    start: jax.Array, scale: Any,
) -> jax.Array:  # fmt: skip
    """S tokens, a chunk at a time: the outputs [B, S, Hv, V], then the state, key axis second"""
    count, size = q.shape[1], min(DELTA_CHUNK, q.shape[1])
    if count == 0 or start.size == 0:
        return jnp.concatenate((jnp.zeros_like(v, jnp.float32), start.swapaxes(1, 2)), 1)
    chunks = -(-count // size)

    def split(x: jax.Array) -> jax.Array:
        """[B, S, ...] as [chunks, B, size, ...]; zeros behind the last token change nothing"""
        widths = ((0, 0), (0, chunks * size - count), *(((0, 0),) * (x.ndim - 2)))
        x = jnp.pad(x, widths)
        return x.reshape(x.shape[0], chunks, size, *x.shape[2:]).swapaxes(0, 1)

    def step(state: jax.Array, part: Any) -> Any:
        q, k, v, decay, beta = part
        out, state = delta_chunk(q, k, v, decay, beta, state)
        return state, out

    state, outputs = lax.scan(step, start, tuple(map(split, (q, k, v, decay, beta))))
    outputs = outputs.swapaxes(0, 1).reshape(q.shape[0], chunks * size, *v.shape[2:])[:, :count]
    return jnp.concatenate((scale * outputs, state.swapaxes(1, 2)), 1)


def delta_chunk(
    q: jax.Array, k: jax.Array, v: jax.Array, decay: jax.Array, beta: jax.Array, state: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """the outputs [B, C, Hv, V] before scaling, and the state [B, Hv, K, V]

    The state after token i of a chunk is exp(G_i) state + sum_{j <= i} exp(G_i - G_j) k_j u_j, G
    being the running sum of decay; what token i writes, u_i, follows from the earlier ones:
    (1 + lower(beta_i exp(G_i - G_j) k_i . k_j)) u = beta (v - exp(G) k . state)
    """
    query, key, value, decay, beta, state = by_group(q, k, v, decay, beta, state)
    ratio = jnp.exp(between(decay))
    reach = jnp.exp(jnp.cumsum(decay, -1))[..., None]
    recalled = reach * jnp.einsum("bgck,bgrkv->bgrcv", key, state)
    written = solve_writes(ratio, beta, key, beta[..., None] * (value - recalled))
    seen = ratio * jnp.einsum("bgik,bgjk->bgij", query, key)[:, :, None]
    out = reach * jnp.einsum("bgck,bgrkv->bgrcv", query, state) + seen @ written
    left = ratio[..., -1, :, None] * written
    after = reach[..., -1:, :] * state + jnp.einsum("bgck,bgrcv->bgrkv", key, left)
    outputs = out.transpose(0, 3, 1, 2, 4).reshape(v.shape)
    return outputs, after.reshape(after.shape[0], v.shape[2], *after.shape[3:])


def by_group(
    q: jax.Array, k: jax.Array, v: jax.Array, decay: jax.Array, beta: jax.Array, state: jax.Array
) -> tuple[jax.Array, ...]:
    """heads before tokens, value heads by the key head that serves them, all in f32"""
    heads = (k.shape[2], v.shape[2] // max(k.shape[2], 1))
    query, key = (x.astype(jnp.float32).transpose(0, 2, 1, 3) for x in (q, k))
    value = v.astype(jnp.float32).transpose(0, 2, 1, 3)
    value = value.reshape(value.shape[0], *heads, *value.shape[2:])
    decay, beta = (x.swapaxes(1, 2).reshape(x.shape[0], *heads, x.shape[1]) for x in (decay, beta))
    return query, key, value, decay, beta, state.reshape(state.shape[0], *heads, *state.shape[2:])


def between(decay: jax.Array) -> jax.Array:
    """decay[j + 1] + .. + decay[i] at [..., i, j], -inf above the diagonal. Summed as they are:
    differences of long sums would lose the small ones."""
    size = decay.shape[-1]
    order = jnp.arange(size)
    later = order[:, None] > order
    sums = jnp.cumsum(jnp.where(later, decay[..., :, None], 0.0), -2)
    return jnp.where(order[:, None] >= order, sums, -jnp.inf)


def solve_writes(ratio: jax.Array, beta: jax.Array, key: jax.Array, wanted: jax.Array) -> jax.Array:
    """what each token writes to the state, given the tokens before it in its chunk"""
    pairs = jnp.einsum("bgik,bgjk->bgij", key, key)[:, :, None]
    lower = jnp.tril(beta[..., None] * ratio * pairs, -1)
    return lax.linalg.triangular_solve(
        lower, wanted, left_side=True, lower=True, unit_diagonal=True
    )


def run_starts(segments: jax.Array) -> jax.Array:
    """whether a token is the first of its run of equal segments"""
    return jnp.concatenate((jnp.ones(1, bool), segments[1:] != segments[:-1]))


def delta_rule_packed(
    q: jax.Array, k: jax.Array, v: jax.Array, decay: jax.Array, beta: jax.Array,
    start: jax.Array, rows: jax.Array, segments: jax.Array, scale: Any,
) -> jax.Array:  # fmt: skip
    """runs end to end, a piece of one run at a time: the outputs [P, Hv, V], then the rows'
    states, [R * K, Hv, V]"""
    count, size, number = q.shape[0], min(DELTA_CHUNK, q.shape[0]), start.shape[0]
    starts = jnp.append(run_starts(segments), True)
    places = jnp.where(starts[1:], jnp.arange(1, count + 1), count)
    stops = lax.cummin(places, reverse=True)
    tokens = [jnp.pad(x, ((0, size), *(((0, 0),) * (x.ndim - 1)))) for x in (q, k, v, decay, beta)]
    known = (rows >= 0) & (rows < number)
    states = start if number else jnp.zeros((1, *start.shape[1:]), jnp.float32)

    def piece(carry: Any) -> Any:
        at, memory, states, outputs = carry
        row = jnp.clip(rows[at], 0, states.shape[0] - 1)
        own = lax.dynamic_index_in_dim(states, row)
        first = jnp.where(known[at], own, 0.0)
        memory = jnp.where(starts[at], first, memory)
        stop = jnp.minimum(stops[at], at + size)
        inside = jnp.arange(size) < stop - at
        parts = [lax.dynamic_slice_in_dim(x, at, size)[None] for x in tokens]
        for n in (1, 3, 4):  # what lies behind the run changes nothing
            shape = (1, size, *((1,) * (parts[n].ndim - 2)))
            parts[n] = jnp.where(inside.reshape(shape), parts[n], 0)
        out, memory = delta_chunk(*parts, memory)  # type: ignore[call-arg]
        outputs = lax.dynamic_update_slice_in_dim(outputs, out[0], at, 0)
        left = jnp.where(known[at] & starts[stop], memory, own)
        states = lax.dynamic_update_index_in_dim(states, left[0], row, 0)
        return stop, memory, states, outputs

    outputs = jnp.zeros((count + size, *v.shape[1:]), jnp.float32)
    nothing = jnp.zeros((1, *start.shape[1:]), jnp.float32)
    carry = (jnp.int64(0), nothing, states, outputs)
    _, _, states, outputs = lax.while_loop(lambda c: c[0] < count, piece, carry)
    return packed_result(outputs[:count], states[:number], scale)


def packed_result(outputs: jax.Array, states: jax.Array, scale: Any) -> jax.Array:
    """outputs [P, Hv, V] and states [R, Hv, K, V] as one array"""
    after = states.swapaxes(1, 2).reshape(states.shape[0] * states.shape[2], *outputs.shape[1:])
    return jnp.concatenate((scale * outputs, after))


def delta_rule_runs(
    q: jax.Array, k: jax.Array, v: jax.Array, decay: jax.Array, beta: jax.Array,
    start: jax.Array, rows: jax.Array, segments: jax.Array, scale: Any,
) -> jax.Array:  # fmt: skip
    """delta_rule_packed for gradients, which need a loop of known length: chunks of the whole
    line, tokens of other runs masked, every row's state looked at in each"""
    count, size = q.shape[0], min(DELTA_CHUNK, q.shape[0])
    chunks = -(-count // size)
    lacking = chunks * size - count
    runs = jnp.cumsum(run_starts(segments).astype(jnp.int32))

    def split(x: jax.Array, behind: int = 0) -> jax.Array:
        widths = ((0, lacking), *(((0, 0),) * (x.ndim - 1)))
        x = jnp.pad(x, widths, constant_values=behind)
        return x.reshape(chunks, size, *x.shape[1:])

    def step(carry: Any, part: Any) -> Any:
        out, *carry = run_chunk(*part, *carry)
        return tuple(carry), out

    tokens = [split(x) for x in (q, k, v, decay, beta)]
    parts = (*tokens, split(rows, -1), split(runs, -1))
    first = (jnp.zeros_like(start, shape=start.shape[1:]), jnp.int32(0), start)
    (_, _, states), outputs = lax.scan(step, first, parts)
    return packed_result(outputs.reshape(chunks * size, *v.shape[1:])[:count], states, scale)


def run_chunk(
    q: jax.Array, k: jax.Array, v: jax.Array, decay: jax.Array, beta: jax.Array,
    rows: jax.Array, runs: jax.Array, memory: jax.Array, run: jax.Array, states: jax.Array,
) -> tuple[jax.Array, ...]:  # fmt: skip
    """delta_chunk over tokens of several runs: the first of them goes on from `memory` where it
    is run `run`, the others begin from their rows' states. Gives what comes after the last."""
    query, key, value, decay, beta, before = by_group(
        q[None], k[None], v[None], decay[None], beta[None], memory[None]
    )
    same = runs[:, None] == runs
    ratio = jnp.where(same, jnp.exp(between(decay)), 0.0)
    order = jnp.arange(runs.shape[0])
    own = same & (order[:, None] >= order)
    reach = jnp.exp(jnp.einsum("ij,bgrj->bgri", own.astype(jnp.float32), decay))[..., None]
    numbers = jnp.arange(states.shape[0])
    begins = (rows[:, None] == numbers) & (runs != run)[:, None]  # [C, R]
    goes_on = (runs == run).astype(jnp.float32)
    from_rows = states.reshape(states.shape[0], *before.shape[1:])  # [R, Hk, G, K, V]

    def read(x: jax.Array) -> jax.Array:
        """x . the state that the token's run began the chunk with"""
        old = goes_on[:, None] * jnp.einsum("bgck,bgrkv->bgrcv", x, before)
        new = jnp.einsum("bgck,ngrkv,cn->bgrcv", x, from_rows, begins.astype(jnp.float32))
        return old + new

    wanted = beta[..., None] * (value - reach * read(key))
    written = solve_writes(ratio, beta, key, wanted)
    seen = ratio * jnp.einsum("bgik,bgjk->bgij", query, key)[:, :, None]
    out = reach * read(query) + seen @ written
    ends = jnp.append(runs[1:] != runs[:-1], True)

    def after(token: jax.Array) -> jax.Array:
        """the state after one token, [Hk, G, K, V]"""
        base = goes_on[token] * before[0]
        base = base + jnp.einsum("n,ngrkv->grkv", begins[token].astype(jnp.float32), from_rows)
        left = jnp.take(ratio[0], token, axis=2)[..., None] * written[0]
        kept = jnp.take(reach[0], token, axis=2)[..., None]
        return kept * base + jnp.einsum("gck,grcv->grkv", key[0], left)

    def finished(number: jax.Array, state: jax.Array) -> jax.Array:
        mine = ends & (rows == number)
        return jnp.where(mine.any(), after(jnp.argmax(mine)).reshape(state.shape), state)

    states = jax.vmap(finished)(numbers, states)
    memory = after(jnp.int32(runs.shape[0] - 1)).reshape(memory.shape)
    return out[0].transpose(2, 0, 1, 3).reshape(v.shape), memory, runs[-1], states
