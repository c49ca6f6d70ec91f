"""`std.random` against the published known answers and values recorded from `jax.random`.

`jax_random.json` was recorded with jax 0.10.2 and `jax_threefry_partitionable` on: for each raw key
`split(key, 5)`, `bits(key, (7,))` as u32, `uniform(key, (7,))` in f32 (hexadecimal), and `fold_in`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .std_support import Run

RECORDED = json.loads((Path(__file__).parent / "jax_random.json").read_text())

# Random123's kat_vectors for threefry2x32-20: key, counter, output.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def words(*values: int) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_known_answers(
    run: Run, key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]
) -> None:
    a, b = run("std.random::threefry2x32", words(*key), words(counter[0]), words(counter[1]))
    assert (a.tolist(), b.tolist()) == ([expected[0]], [expected[1]])


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["key"]))
def test_equals_jax(run: Run, case: dict[str, Any]) -> None:
    key = words(*case["key"])
    assert run("std.random::split", key, N=5).tolist() == case["split"]
    assert run("std.random::bits", key, N=7).tolist() == case["bits"]
    uniform = run("std.random::uniform", key, N=7, T="f32")
    assert [float(u).hex() for u in uniform] == case["uniform"]
    for data, expected in case["fold_in"].items():
        assert run("std.random::fold_in", key, np.int32(int(data))).tolist() == expected


def test_bits_above_the_words_do_not_count(run: Run) -> None:
    key = words(7, 2)
    for other in (words(7 + (1 << 32), 2), words(7 - (1 << 32), 2 + (5 << 40))):
        assert run("std.random::bits", other, N=4).tolist() == (
            run("std.random::bits", key, N=4).tolist()
        )


def test_no_draws(run: Run) -> None:
    key = words(1, 2)
    assert run("std.random::bits", key, N=0).shape == (0,)
    assert run("std.random::split", key, N=0).shape == (0, 2)
    assert run("std.random::normal", key, N=0, T="f32").shape == (0,)


def test_a_draw_does_not_depend_on_how_many_are_asked_for(run: Run) -> None:
    key = words(3, 4)
    few, many = (run("std.random::uniform", key, N=n, T="f32") for n in (5, 50))
    assert few.tolist() == many[:5].tolist()


def test_normal_has_its_moments(run: Run) -> None:
    draws = run("std.random::normal", words(0, 9), N=20_000, T="f32").astype(np.float64)
    assert abs(draws.mean()) < 0.03 and abs(draws.std() - 1) < 0.03
    assert abs((draws**3).mean()) < 0.1 and abs((draws**4).mean() - 3) < 0.2


def test_categorical_is_gumbel_max_over_one_draw(run: Run) -> None:
    key = words(11, 5)
    logits = np.random.default_rng(0).normal(size=(6, 9)).astype(np.float32)
    uniform = run("std.random::uniform", key, N=54, T="f32").astype(np.float64)
    noise = -np.log(-np.log(uniform)).reshape(6, 9)
    chosen = run("std.random::categorical", key, logits)
    assert chosen.dtype == np.int32 and chosen.tolist() == (logits + noise).argmax(1).tolist()


def test_categorical_follows_the_weights(run: Run) -> None:
    logits = np.broadcast_to(np.log(np.array([0.5, 0.2, 0.3], np.float32)), (9_000, 3)).copy()
    shares = np.bincount(run("std.random::categorical", words(2, 2), logits), minlength=3) / 9_000
    assert np.abs(shares - [0.5, 0.2, 0.3]).max() < 0.02
