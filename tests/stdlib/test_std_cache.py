"""Cache writes, against writing one element at a time and skipping what lies outside."""

from __future__ import annotations

import numpy as np
import pytest

from .std_support import Array, Run

CACHE = "std.nn.cache::"
HEADS, WIDTH = 2, 3


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def put(cache: Array, row: int, place: int, value: Array) -> None:
    if 0 <= row < cache.shape[0] and 0 <= place < cache.shape[2]:
        cache[row, :, place] = value


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("at", [-3, -1, 0, 1, 3, 4, 5, 9, 2**31 - 1, -(2**31)])
def test_write_span_and_at(run: Run, rows: int, length: int, at: int) -> None:
    for count in (0, 1, 2, 7):
        cache, value = draw(rows, HEADS, length, WIDTH), draw(rows, HEADS, count, WIDTH, seed=1)
        want = cache.copy()
        for row in range(rows):
            for n in range(count):
                put(want, row, at + n, value[row, :, n])
        assert run(CACHE + "write_span", cache, value, at).tolist() == want.tolist()
        if count == 1:
            assert run(CACHE + "write_at", cache, value, at).tolist() == want.tolist()


@pytest.mark.parametrize("at", [(0, 4, 2), (5, -1, 4), (7, 7, 0)])
def test_write_rows(run: Run, at: tuple[int, ...]) -> None:
    cache, value = draw(3, HEADS, 5, WIDTH), draw(3, HEADS, 1, WIDTH, seed=1)
    want = cache.copy()
    for row in range(3):
        put(want, row, at[row], value[row, :, 0])
    assert run(CACHE + "write_rows", cache, value, ints(*at)).tolist() == want.tolist()


@pytest.mark.parametrize("slots", [(), (2,), (3, 0), (1, 3, 0, 2), (-1, 1), (4, 2)])
@pytest.mark.parametrize("at", [-1, 0, 3, 6])
def test_write_slots(run: Run, slots: tuple[int, ...], at: int) -> None:
    for count in (0, 1, 3):
        cache = draw(4, HEADS, 5, WIDTH)
        value = draw(len(slots), HEADS, count, WIDTH, seed=1)
        want = cache.copy()
        for m, row in enumerate(slots):
            for n in range(count):
                put(want, row, at + n, value[m, :, n])
        got = run(CACHE + "write_slots", cache, value, ints(*slots), at)
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize(
    ("rows", "at"),
    [
        ((), ()),
        ((0,), (4,)),
        ((1, 0, 1), (0, 0, 3)),
        ((2, -1, 0, 1), (0, 0, 5, -1)),  # outside the cache, row or place
        ((0, 0, 1), (2, 2, 2)),  # one place twice
    ],
)
def test_write_tokens(run: Run, rows: tuple[int, ...], at: tuple[int, ...]) -> None:
    cache, value = draw(2, HEADS, 5, WIDTH), draw(1, HEADS, len(rows), WIDTH, seed=1)
    want = cache.copy()
    for p, row in enumerate(rows):
        put(want, row, at[p], value[0, :, p])
    got = run(CACHE + "write_tokens", cache, value, ints(*rows), ints(*at))
    assert got.tolist() == want.tolist()


def test_page_slots(run: Run) -> None:
    table = np.array([[3, 1], [0, 7]], np.int32)
    got = run(CACHE + "page_slots", table, ints(5, 2), Size=4)
    assert got.dtype == np.int32 and got.tolist() == [1 * 4 + 1, 0 * 4 + 2]
    assert run(CACHE + "page_slots", table[:0], ints(), Size=4).shape == (0,)
