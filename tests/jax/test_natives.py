"""Kernels beyond what the matrix of all ops reaches: gradients, many rows, blocks of a head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import linnet.jax
from linnet.jax.kernels import experts, losses

from .support import checked, difference

Arrays = list[Any]

RULE = """
entry run<B: Dim, S: Dim>(
    q: Tensor[B, S, 2, 4; f32], k: Tensor[B, S, 2, 4; f32], v: Tensor[B, S, 4, 3; f32],
    decay: Tensor[B, S, 4; f32], beta: Tensor[B, S, 4; f32], start: Tensor[B, 4, 4, 3; f32],
) -> Tensor[B, S + 4, 4, 3; f32] {
    return gated_delta_rule(q, k, v, decay, beta, start, 0.5)
}
"""
PACKED = """
entry run<P: Dim, R: Dim>(
    q: Tensor[P, 2, 4; f32], k: Tensor[P, 2, 4; f32], v: Tensor[P, 4, 3; f32],
    decay: Tensor[P, 4; f32], beta: Tensor[P, 4; f32], start: Tensor[R, 4, 4, 3; f32],
    rows: Tensor[P; i32], segments: Tensor[P; i32],
) -> Tensor[P + R * 4, 4, 3; f32] where P > 0 {
    return gated_delta_rule_packed(q, k, v, decay, beta, start, rows, segments, 0.5)
}
"""
COMBINED = """
entry run<R: Dim, K: Dim, E: Dim>(
    x: Tensor[R, K, 6; f32], weight: Tensor[E, 5, 6; f32], experts: Tensor[R, K; i64],
    weights: Tensor[R, K; f32],
) -> Tensor[R, 5; f32] {
    return combine_experts(x, weight, experts, weights)
}
"""
LOSS = """
entry run<N: Dim, V: Dim>(
    hidden: Tensor[N, 6; f32], weight: Tensor[V, 6; f32], targets: Tensor[N; i64],
    weights: Tensor[N; f32],
) -> f32 {
    return linear_cross_entropy(hidden, weight, targets, weights)
}
"""


def rule(rng: Any, *lead: int) -> Arrays:
    q, k = (rng.normal(size=(*lead, 2, 4)).astype(np.float32) / 2 for _ in range(2))
    decay = -np.abs(rng.normal(size=(*lead, 4))).astype(np.float32)
    beta = rng.random((*lead, 4)).astype(np.float32)
    return [q, k, rng.normal(size=(*lead, 4, 3)).astype(np.float32), decay, beta]


def packed(rng: Any) -> Arrays:
    """A run that goes on from row 1, one from nothing, a row's one token, a long one, padding."""
    runs = [(1, 5), (-1, 3), (0, 1), (2, 70), (-1, 2)]
    rows = np.repeat([row for row, _ in runs], [n for _, n in runs]).astype(np.int32)
    segments = np.repeat(np.arange(5), [n for _, n in runs]).astype(np.int32)
    start = rng.normal(size=(4, 4, 4, 3)).astype(np.float32)
    return [*rule(rng, len(rows)), start, rows, segments]


def chosen(rng: Any, rows: int) -> Arrays:
    x = rng.normal(size=(rows, 3, 6)).astype(np.float32)
    weight = rng.normal(size=(7, 5, 6)).astype(np.float32)
    places = rng.integers(0, 6, (rows, 3)).astype(np.int64)  # nothing goes to the last
    return [x, weight, places, rng.normal(size=(rows, 3)).astype(np.float32)]


def scored(rng: Any) -> Arrays:
    hidden, weight = (rng.normal(size=(n, 6)).astype(np.float32) for n in (11, 9))
    targets = rng.integers(0, 9, 11).astype(np.int64)
    return [hidden, weight, targets, rng.normal(size=11).astype(np.float32)]


CASES = {
    "delta_rule": ("recurrent::{gated_delta_rule}", RULE,
                   lambda rng: [*rule(rng, 2, 70),
                                rng.normal(size=(2, 4, 4, 3)).astype(np.float32)]),
    "delta_rule_runs": ("recurrent::{gated_delta_rule_packed}", PACKED, packed),
    "few experts": ("moe::{combine_experts}", COMBINED, lambda rng: chosen(rng, 3)),
    "many experts": ("moe::{combine_experts}", COMBINED, lambda rng: chosen(rng, 40)),
    "losses": ("loss::{linear_cross_entropy}", LOSS, scored),
}  # fmt: skip
QUICK = ("few experts", "many experts", "losses")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_gradients_are_those_of_the_body(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "LOGIT_BLOCK", 36)
    use, text, inputs = CASES[name]
    program = checked(tmp_path, f"module m\nuse std.nn.{use}\npub {text.strip()}\n")
    given = inputs(np.random.default_rng(len(name)))
    floats = tuple(k for k, a in enumerate(given) if a.dtype == np.float32)
    found: list[tuple[Any, ...]] = []
    for numerics in ("fast", "exact"):
        f = linnet.jax.load_source(program, entry="run", numerics=numerics)

        def total(*args: Any, f: Any = f) -> Any:
            made = f(*args)
            share = np.cos(np.arange(made.size, dtype=np.float32)).reshape(made.shape)
            return jnp.sum(made * share)

        found.append((f(*given), *jax.grad(total, argnums=floats)(*given)))
    for fast, exact in zip(*found, strict=True):
        assert difference(fast, exact) < 2e-4


def arrays(jaxpr: Any) -> Iterator[Any]:
    """The shapes of everything a program makes, inner programs included."""
    for equation in jaxpr.eqns:
        yield from (v.aval.shape for v in equation.outvars)
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(value):
                yield from arrays(getattr(value, "jaxpr", value))


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")


def test_whole_logits_are_never_held() -> None:
    rows, features, vocabulary = 64, 8, losses.LOGIT_BLOCK // 16
    hidden, weight = jnp.zeros((rows, features)), jnp.zeros((vocabulary, features))

    def loss(hidden: Any, weight: Any) -> Any:
        return losses.linear_log_probs(hidden, weight, jnp.zeros(rows, jnp.int32)).sum()

    traced = jax.make_jaxpr(jax.grad(loss, argnums=(0, 1)))(hidden, weight)
    sizes = [int(np.prod(shape)) for shape in arrays(traced.jaxpr)]
    assert losses.LOGIT_BLOCK in sizes  # a block's, forward and backward
    assert max(sizes) < rows * vocabulary


@pytest.mark.parametrize("copies", [1, 4])
def test_many_products_read_each_expert_once(copies: int) -> None:
    """The loop goes through runs of one expert's rows, not through the experts."""
    rng = np.random.default_rng(copies)
    x = jnp.asarray(rng.normal(size=(20, 6)), jnp.float32)
    weight = jnp.asarray(rng.normal(size=(50, 5, 6)), jnp.float32)
    places = jnp.asarray(rng.choice([3, 49], 20 * copies))
    steps: list[int] = []

    def step(made: Any, at: Any, stop: Any, expert: Any) -> Any:
        jax.debug.callback(lambda a, b: steps.append(int(b) - int(a)), at, stop)
        return made

    made = experts.products(x, weight, places, copies)
    want = np.einsum("ni,noi->no", np.repeat(x, copies, 0), np.asarray(weight)[np.asarray(places)])
    assert difference(made, want) < 1e-5
    experts.over_tiles(jnp.sort(places), 8, 50, step, jnp.int32(0))
    jax.effects_barrier()
    assert sum(steps) == 20 * copies
    assert len(steps) <= -(-20 * copies // 8) + 1
