"""`std.random` gives the same bits on every backend, those of `jax.random`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet
from linnet.ir.evaluate import Evaluator

from ..matrix.backends import to_numpy
from ..matrix.compare import difference
from .programs import Runner

PROGRAM = """
use std.random::{bits, categorical, fold_in, normal, split, uniform}
pub entry main<N: Dim>(key: Tensor[2; i64], data: i32)
    -> (Tensor[N, 2; i64], Tensor[N; i64], Tensor[N; f32], Tensor[2; i64]) {
    return (split<N>(key), bits<N>(key), uniform<N, f32>(key), fold_in(key, data))
}
pub entry floats<N: Dim>(key: Tensor[2; i64]) -> (Tensor[N; f32], Tensor[N; bf16]) {
    return (normal<N, f32>(key), uniform<N, bf16>(key))
}
pub entry draw<B: Dim, V: Dim>(key: Tensor[2; i64], logits: Tensor[B, V; f32]) -> Tensor[B; i32] {
    return categorical(key, logits)
}
"""
KEYS = [(0, 0), (0, 42), (7, 2**32 - 5), (2**32 - 1, 2**31)]


def reference(jax: Any, key: tuple[int, int], count: int) -> tuple[Any, ...]:
    """What `jax.random` draws from the same two words."""
    with jax.threefry_partitionable(True):
        words = jax.numpy.array(key, jax.numpy.uint32)
        made = jax.random.wrap_key_data(words, impl="threefry2x32")
        keys = jax.random.key_data(jax.random.split(made, count))
        drawn = jax.random.bits(made, (count,), jax.numpy.uint32)
        return (
            np.asarray(keys).astype(np.int64),
            np.asarray(drawn).astype(np.int64),
            np.asarray(jax.random.uniform(made, (count,), jax.numpy.float32)),
        )


def test_bits_are_those_of_jax(run: Runner) -> None:
    jax = pytest.importorskip("jax")
    model = run.load(PROGRAM)
    for number, key in enumerate(KEYS):
        count = (1, 5, 33, 8)[number]
        got = to_numpy(model.run_entry("main", [np.array(key), 3], generics={"N": count}))
        for a, b in zip(got, reference(jax, key, count), strict=False):
            assert a.dtype == b.dtype and np.array_equal(a, b), (key, a, b)


def test_every_backend_draws_what_the_body_says(run: Runner) -> None:
    model = run.load(PROGRAM)
    oracle = Evaluator(linnet.load_program(run.folder / "program.linnet"))
    key = np.array([7, 2**32 - 5])
    for entry, inputs, sizes, limit in (
        ("main", [key, -3], {"N": 6}, 0.0),
        ("floats", [key], {"N": 9}, 1e-5),
        ("draw", [key, np.linspace(-2, 2, 44, dtype=np.float32).reshape(4, 11)], {}, 0.0),
    ):
        want = oracle.run(f"program::{entry}", inputs, sizes)
        got = to_numpy(model.run_entry(entry, inputs, generics=sizes))
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for a, b in pairs:
            assert difference(a, b) <= limit, (entry, a, b)
