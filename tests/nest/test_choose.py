"""Which token is chosen from logits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from linnet.nest.errors import NestError
from linnet.nest.generate import Sampling, choose, generate, row

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


def test_64_bit_integers_stay_apart() -> None:
    near = np.array([[1 << 40, (1 << 40) + 1]])
    assert choose(row(near), 0, np.random.default_rng(0)) == 1


def test_no_logits() -> None:
    with pytest.raises(NestError, match="no logits"):
        choose(row(np.zeros((1, 0), np.float32)), 0, np.random.default_rng(0))


@pytest.mark.parametrize("given", [{"temperature": "1"}, {"temperature": -1.0}, {"seed": 1.5},
                                   {"temperature": float("nan")}, {"seed": -1}, {"seed": 10**5000},
                                   {"temperature": 10**400}, {"temperature": True}])  # fmt: skip
def test_no_sampling(given: Any) -> None:
    with pytest.raises(NestError, match="has to be"):
        Sampling(**given)


class Counting:
    """A model whose logits say the sum of what it was given."""

    def run_entry(self, name: str, inputs: Any, generics: Any = None) -> Any:
        logits = np.zeros((1, 64), np.float32)
        logits[0, int(np.sum(inputs[0])) % 64] = 1
        return logits

    def reset_state(self) -> None: ...

    def entries(self) -> list[str]:
        return []


def test_any_real_temperature() -> None:
    assert Sampling(Fraction(1, 2)).temperature == 0.5  # type: ignore[arg-type]


@pytest.mark.parametrize("prompt", [[3, 4], (3, 4), np.array([3, 4]), iter([3, 4])])
def test_prompts(prompt: Any) -> None:
    assert list(generate(Counting(), prompt, 2)) == [7, 7]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [([], "no tokens"), ([1, 1.5], "token 1 of the prompt is 1.5"), ([True], "token 0"),
     ([1 << 31], "token 0 of the prompt is 2147483648"), ([-1], "integers from 0"),
     (np.array([[1]]), "token 0"), ("ab", "the prompt is 'ab'; it has to be a sequence"),
     (None, "the prompt is None"), (np.array(3), "the prompt is 3"), ([10**5000], "a int")],
)  # fmt: skip
def test_no_prompts(prompt: Any, message: str) -> None:
    with pytest.raises(NestError, match=message):
        list(generate(Counting(), prompt, 2))


@pytest.mark.parametrize("count", [1.5, None, "3", True])
def test_no_count(count: Any) -> None:
    with pytest.raises(NestError, match=r"max_new_tokens is .*an integer"):
        list(generate(Counting(), [1], count))
