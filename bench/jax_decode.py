"""SmolLM2's decode on JAX: a hand-written `jax.numpy` one beside ours, as source and as a program.

    python bench/jax_decode.py [--steps 30] [--rounds 3] [--prompt 512] [--positions 1024]

Same weights, same prompt, batch 1, the same tokens fed to all, turn by turn. Prints milliseconds a
step (the median of a round, the best round) and how far logits are apart. `Plain` is the peer, for
other benchmarks to use: one jitted function a step, weights and caches in plain lists, the caches
donated, every layer written out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from linnet import nest

CARD = "models/smollm2-135m-instruct"
LAYERS, HEADS, GROUPS, WIDTH = 30, 9, 3, 64
THETA, EPSILON = 1e5, 1e-5
Layer = dict[str, jax.Array]
Caches = list[tuple[jax.Array, jax.Array]]


class Plain:
    """The model as one would write it by hand for this one purpose."""

    def __init__(self, weights: Mapping[str, Any], dtype: Any, positions: int) -> None:
        named = {path: jnp.asarray(w, dtype) for path, w in weights.items()}
        self.embedding = named["embedding.weight"]
        self.norm = named["norm.weight"]
        self.layers = [_layer(named, f"layers.{k}.") for k in range(LAYERS)]
        self.dtype, self.positions = dtype, positions
        self.caches: Caches = []

    def prefill(self, tokens: Any) -> jax.Array:
        """Fills the caches with a prompt `[S]`; the logits `[Vocab]` after it."""
        shape = (GROUPS, self.positions, WIDTH)
        self.caches = [
            (jnp.zeros(shape, self.dtype), jnp.zeros(shape, self.dtype)) for _ in self.layers
        ]
        return self._run(jnp.asarray(tokens, jnp.int32), 0)

    def step(self, token: int, position: int) -> jax.Array:
        """The logits `[Vocab]` after one more token."""
        return self._run(jnp.asarray([token], jnp.int32), position)

    def _run(self, tokens: jax.Array, start: int) -> jax.Array:
        weights = (self.embedding, self.norm, self.layers)
        logits, self.caches = forward(weights, self.caches, tokens, jnp.int32(start))
        return logits


def _layer(named: Mapping[str, jax.Array], path: str) -> Layer:
    return {k.removeprefix(path): v for k, v in named.items() if k.startswith(path)}


@partial(jax.jit, donate_argnums=1)
def forward(
    weights: Any, caches: Caches, tokens: jax.Array, start: jax.Array
) -> tuple[jax.Array, Caches]:
    """New tokens `[S]` at `start`: the last one's logits, and the caches with them in."""
    embedding, norm, layers = weights
    x = embedding[tokens]
    positions = start + jnp.arange(tokens.shape[0])
    powers = jnp.arange(WIDTH // 2, dtype=jnp.float32) * (2 / WIDTH)
    angles = positions[:, None] * (1 / THETA**powers)
    turns = jnp.cos(angles), jnp.sin(angles)
    after = []
    for layer, cache in zip(layers, caches, strict=True):
        mixed, cache = attention(
            layer, cache, rms_norm(x, layer["attention_norm.weight"]), positions, turns
        )
        after.append(cache)
        x = x + mixed
        h = rms_norm(x, layer["mlp_norm.weight"])
        gated = jax.nn.silu(h @ layer["mlp.gate.weight"].T) * (h @ layer["mlp.up.weight"].T)
        x = x + gated @ layer["mlp.down.weight"].T
    logits = rms_norm(x[-1:], norm) @ embedding.T
    return logits[0], after


def rms_norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    scale = lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + EPSILON)
    return (wide * scale).astype(x.dtype) * weight


def attention(
    layer: Layer, cache: tuple[jax.Array, jax.Array], x: jax.Array, positions: jax.Array,
    turns: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:  # fmt: skip
    """Grouped heads over the whole cache, what lies after a token hidden."""
    count = x.shape[0]
    q = turned((x @ layer["attention.q_proj.weight"].T).reshape(count, HEADS, WIDTH), turns)
    k = turned((x @ layer["attention.k_proj.weight"].T).reshape(count, GROUPS, WIDTH), turns)
    v = (x @ layer["attention.v_proj.weight"].T).reshape(count, GROUPS, WIDTH)
    at = (0, positions[0], 0)
    keys = lax.dynamic_update_slice(cache[0], k.swapaxes(0, 1), at)
    values = lax.dynamic_update_slice(cache[1], v.swapaxes(0, 1), at)
    q = q.reshape(count, GROUPS, HEADS // GROUPS, WIDTH)
    scores = jnp.einsum("sgrd,gtd->grst", q, keys, preferred_element_type=jnp.float32)
    seen = jnp.arange(keys.shape[1]) <= positions[:, None]
    scores = jnp.where(seen, scores * WIDTH**-0.5, -1e30)
    weights = jax.nn.softmax(scores, -1).astype(x.dtype)
    mixed = jnp.einsum("grst,gtd->sgrd", weights, values)
    return mixed.reshape(count, HEADS * WIDTH) @ layer["attention.o_proj.weight"].T, (keys, values)


def turned(x: jax.Array, turns: tuple[jax.Array, jax.Array]) -> jax.Array:
    cosines, sines = (t[:, None] for t in turns)
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate((a * cosines - b * sines, b * cosines + a * sines), -1).astype(x.dtype)


# --- ours beside it -------------------------------------------------------------------------------


class Ours:
    """A loaded model with the calls that `Plain` has."""

    def __init__(self, backend: str, dtype: str, positions: int) -> None:
        generics = {"Batch": 1, "MaxSeq": positions, "T": dtype}
        self.model = nest.load(CARD, backend, generics=generics, cast_dtype=True)

    def prefill(self, tokens: Any) -> jax.Array:
        self.model.reset_state()
        return self._row(self.model.run_entry("prefill", [np.asarray(tokens, np.int32)[None], 0]))

    def step(self, token: int, position: int) -> jax.Array:
        return self._row(
            self.model.run_entry("decode", [np.asarray([[token]], np.int32), position])
        )

    @staticmethod
    def _row(logits: Any) -> jax.Array:
        return logits.reshape(-1)  # type: ignore[no-any-return]


def main() -> None:
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--prompt", type=int, default=512)
    options.add_argument("--positions", type=int, default=1024)
    options.add_argument("--dtype", choices=("bf16", "f32"), default="bf16")
    given = options.parse_args()
    print(json.dumps(measure(**vars(given)), indent=2))


def measure(steps: int, rounds: int, prompt: int, positions: int, dtype: str) -> dict[str, Any]:
    """Milliseconds of a step and of the prompt for each contender."""
    contenders: dict[str, Any] = {
        backend: Ours(backend, dtype, positions) for backend in ("jax_source", "jax_model")
    }
    weights = contenders["jax_model"].model.parameters
    contenders["plain"] = Plain(weights, weights["norm.weight"].dtype, positions)
    tokens = np.random.default_rng(1).integers(0, 49152, prompt + steps)
    first: dict[str, list[float]] = {name: [] for name in contenders}
    each: dict[str, list[float]] = {name: [] for name in contenders}
    logits = {}
    for turn in range(rounds + 1):
        for name, model in contenders.items():
            took = timed(lambda m=model: m.prefill(tokens[:prompt]))
            run = [
                timed(partial(model.step, int(tokens[p]), p)) for p in range(prompt, prompt + steps)
            ]
            logits[name] = np.asarray(model.step(int(tokens[-1]), prompt + steps), np.float32)
            if turn:  # the first is compiled
                first[name].append(took)
                each[name].append(statistics.median(run))
    found: dict[str, Any] = {
        name: {"step ms": min(each[name]), "prompt ms": min(first[name])} for name in contenders
    }
    spread = [float(np.abs(row - logits["plain"]).max()) for row in logits.values()]
    return {**found, "largest difference": max(spread)}


def timed(call: Callable[[], jax.Array]) -> float:
    """Milliseconds until the logits are on the host."""
    started = time.perf_counter()
    np.asarray(call())
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    main()
