"""Which token is chosen from logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linnet.nest.errors import NestError
from linnet.nest.generate import choose, row

INF = float("inf")


def draws(logits: Any, temperature: float, count: int = 400) -> dict[int, int]:
    rng = np.random.default_rng(0)
    found = [choose(np.array(logits, np.float32), temperature, rng) for _ in range(count)]
    return {token: found.count(token) for token in sorted(set(found))}


def test_the_best_one_at_temperature_0() -> None:
    assert draws([1, 3, 3, 2], 0) == {1: 400}
    assert draws([-INF, 2, INF, INF], 0) == {2: 400}


def test_drawn_as_the_softmax_says() -> None:
    found = draws([0, np.log(3), -INF], 1.0, 4000)
    assert set(found) == {0, 1} and 0.72 < found[1] / 4000 < 0.78
    assert draws([0, 100], 1e-3) == {1: 400}


def test_infinite_logits_share_alike() -> None:
    found = draws([5, INF, 0, INF, -INF], 0.7, 4000)
    assert set(found) == {1, 3} and 0.47 < found[1] / 4000 < 0.53


@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize(
    ("logits", "message"), [([1, np.nan, 2], "NaN"), ([-INF, -INF], "all -inf")]
)
def test_nothing_to_choose(logits: Any, message: str, temperature: float) -> None:
    with pytest.raises(NestError, match=message):
        draws(logits, temperature, 1)


@pytest.mark.filterwarnings("error")
def test_a_temperature_near_0() -> None:
    assert draws([1, 3, 2, -INF], 1e-320) == {1: 400}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_row_is_f32(dtype: str) -> None:
    found = row(np.array([[1, 2, 3]], dtype))
    assert found.dtype == np.float32 and found.tolist() == [1, 2, 3]


def test_f64_stays_as_it_is() -> None:
    near, far = np.array([[1.0, 1.0 + 1e-9]]), np.array([[1e39, 2e39]])
    rng = np.random.default_rng(0)
    assert choose(row(near), 0, rng) == choose(row(far), 0, rng) == 1
    assert choose(row(far), 1.0, rng) == 1
