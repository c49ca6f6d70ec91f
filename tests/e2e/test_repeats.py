"""Calls like an earlier one take a shorter way in, and are checked as the first was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet
import linnet.native
from linnet.backends.errors import InputError
from linnet.backends.repeat import Values

SOURCE = """
module m
pub block Cached<V: Dim, N: Dim> where V > 0, N > 0 {
    param table: Tensor[V; f32]
    state cache: Tensor[N; f32]
    pub entry step<S: Dim>(ids: Tensor[S; i32], pos: i32) -> Tensor[S; f32] {
        let found[i] = table[cast<i64>(ids[i])]
        let moved[n] = cast<i64>(pos) + iota<i64>(S)[n]
        let kept[n] = cache[moved[n]]
        cache = cache + 1.0
        let y[i] = found[i] + kept[i]
        return y
    }
}
"""


def ids(*values: int, dtype: Any = np.int32) -> Any:
    return np.array(values, dtype)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("cached") / "m.linnet"
    path.write_text(SOURCE, encoding="utf-8")
    return linnet.load_program(path)


@pytest.fixture(params=["native-exact", "onnx-exact", "onnx-fast"])
def model(program: Any, request: pytest.FixtureRequest) -> Any:
    backend, _, numerics = request.param.partition("-")
    given = {
        "generics": {"V": 5, "N": 4}, "numerics": numerics,
        "weights": {"table": np.arange(5, dtype=np.float32)},
    }  # fmt: skip
    if backend == "native":
        return linnet.native.load(program, **given)
    pytest.importorskip("onnxruntime")
    from linnet.onnx import load_model

    return load_model(program, root="Cached", threads=1, **given)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each call that took the short way."""
    taken: list[int] = []
    held: Callable[..., Any] = Values.held

    def noted(self: Values, inputs: tuple[Any, ...]) -> Any:
        found = held(self, inputs)
        taken.extend([1] * (found is not None))
        return found

    monkeypatch.setattr(Values, "held", noted)
    return taken


def test_the_second_call_takes_the_short_way(model: Any, short: list[int]) -> None:
    assert model.run_entry("step", [ids(3), 0]).tolist() == [3]
    assert not short
    first = model.run_entry("step", [ids(4), 1])
    assert first.tolist() == [5] and len(short) == 1
    assert model.run_entry("step", (ids(1, 2), 0)).tolist() == [3, 4]  # another shape
    assert model.run_entry("step", (ids(2, 3), 2)).tolist() == [5, 6] and len(short) == 2
    assert first.tolist() == [5]  # each result is the caller's
    assert model.state("cache").tolist() == [4, 4, 4, 4]
    model.reset_state()
    assert model.run_entry("step", [ids(1), 3]).tolist() == [1] and len(short) == 3
    assert model.state("cache").tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([ids(5), 0], r"max\(`ids`\) is 5, past the last position"),
        ([ids(-1), 0], r"min\(`ids`\) is -1, before the first position"),
        ([ids(1), 4], r"`pos`.* is 4, past the last position"),
        ([ids(1), -1], "`pos` is -1, before the first position"),
        ([ids(1), 1 << 31], "`pos` is 2147483648, which does not fit i32"),
        ([ids(1, dtype=np.int64), 0], "`ids` is i32, but got int64"),
        ([ids(1, dtype=">i4"), 0], "`ids` is i32, but got an array of >i4"),
        ([ids(1), True], "`pos` is i32, not a bool"),
        ([ids(1), 1.0], "`pos` is i32, an integer, not 1.0"),
        ([ids(1)], "takes 2 inputs, not 1"),
        ([ids(1), 0, 0], "takes 2 inputs, not 3"),
    ],
)
def test_refused_as_at_first(model: Any, inputs: Any, message: str) -> None:
    for _ in range(2):
        model.run_entry("step", [ids(3), 0])
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            model.run_entry("step", inputs)
    assert model.state("cache").tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda a: np.repeat(a, 2)[::2],
        lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(np.int32),
        lambda a: a.tolist(),
    ],
    ids=["strided", "unaligned", "list"],
)
def test_any_layout_gives_the_same(model: Any, make: Callable[[Any], Any]) -> None:
    for turn in range(0, 6, 2):
        assert model.run_entry("step", [ids(2, 4), 1]).tolist() == [2 + turn, 4 + turn]
        assert model.run_entry("step", [make(ids(4, 2)), 1]).tolist() == [5 + turn, 3 + turn]
