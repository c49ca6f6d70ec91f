"""The object users hold: refusals, state after a failure, threads, weights formats."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.backends.errors import InputError, StateError
from linnet.native import Model, RunError, load
from linnet.native.errors import NativeError
from linnet.native.runtime.packing import Weight, Weights

from .support import checked, difference

COUNTER = """
module m
use std.nn.linear::{Linear}
pub block Counter<N: Dim> where N > 0 {
    sub linear: Linear<N, N, f32>
    state total: Tensor[N; f32]
    pub entry add(x: Tensor[N; f32], divisor: i32, at: i32) -> Tensor[N; f32] {
        total = total + x
        let whole = 10 / divisor
        let picked = total[cast<i64>(at)]
        return total * cast<f32>(whole) + picked
    }
    pub entry project(x: Tensor[N; f32]) -> Tensor[N; f32] {
        return reshape(linear.forward(reshape(x, [1, N])), [N])
    }
}
"""


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return checked(tmp_path_factory.mktemp("counter"), COUNTER)


@pytest.fixture
def model(program: Any) -> Model:
    return load(program, generics={"N": 2}, numerics="exact")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([f32(1, 2)], "takes 3 inputs, not 1"),
        ([f32(1, 2, 3), 1, 0], "is 3, but has to be 2"),
        ([np.array([1.0, 2.0]), 1, 0], r"`x` is f32, but got float64; convert it with x.astype"),
        ([f32(1, 2), 1.5, 0], "`divisor` is i32, an integer, not 1.5"),
        ([f32(1, 2), 1, 2], "past the last position of axis N"),
    ],
)
def test_messages_speak_the_signature(model: Model, inputs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.run_entry("add", inputs)
    assert model.state("total").tolist() == [0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"threads": wrong}, f"threads is an integer from 1 to 1024, not {wrong!r}")
          for wrong in ("two", 1.5, -1, 0, 1025, 2**40, True)),
        ({"weights_format": 5}, "weights_format is one of f32, .*, not 5"),
        ({"weights_format": {"*": ["int8"]}}, "weights_format is one of f32, .*, not .'int8'."),
        ({"weights_format": {3: "int8"}}, "weights_format takes patterns of paths, not 3"),
        ({"weights_format": {"lm_head.*": "int8", "*": "int4"}},
         r"weights_format names `lm_head.\*`, which is no parameter of the model \(such as"),
        ({"present": ["linear.bias", "nope\n"]},
         r"`present` names `nope\\n`, which is no optional parameter"),
        ({"present": "linear.bias"}, "`present` is a list of paths, not 'linear.bias'"),
        ({"generics": [2]}, "generics is a dict of values by name, not a list"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(
    program: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        load(program, **{"generics": {"N": 2}, **options})


def test_the_environment_is_checked_as_the_options_are(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ("two", "0", "-5", "1025", "9" * 30, " 3", "\u0663"):
        monkeypatch.setenv("LINNET_THREADS", wrong)
        with pytest.raises(NativeError, match="LINNET_THREADS is an integer from 1 to 1024, not `"):
            load(program, generics={"N": 2})
        load(program, generics={"N": 2}, threads=1)  # which goes before it
    monkeypatch.setenv("LINNET_THREADS", "4")
    monkeypatch.setenv("LINNET_ISA", "rubbish")
    with pytest.raises(NativeError, match="LINNET_ISA is one of portable"):
        load(program, generics={"N": 2})


@pytest.mark.parametrize("size", [2**45, 2**61])
def test_what_no_memory_holds_is_named(size: int, tmp_path: Path) -> None:
    text = """module m
pub block M<N: Dim> {
    MEMBER: Tensor[N; f32]
    pub entry get() -> Tensor[N; f32] { return kept }
}
"""
    for member in ("state kept", "param kept"):
        told = f"the {member.split()[0].replace('param', 'parameter')} `kept`"
        source = checked(tmp_path, text.replace("MEMBER", member))
        with pytest.raises(MemoryError, match=f"{told} of shape .*it takes {size * 4:,} bytes"):
            load(source, generics={"N": size})


def test_wrong_entry_lists_the_entries(model: Model) -> None:
    with pytest.raises(InputError, match="the model's entries: add, project"):
        model.run_entry("nope")
    with pytest.raises(InputError, match="use run_entry with one of add, project"):
        model(1)


def test_a_call_that_fails_part_way_says_so_until_reset(model: Model) -> None:
    assert model.run_entry("add", [f32(1, 2), 5, 0]).tolist() == [3, 5]
    model._bounds.known["add", ()] = ()  # else the call is refused before it runs
    with pytest.raises(RunError, match=r"divided by zero at .*program.linnet:9"):
        model.run_entry("add", [f32(1, 2), 0, 0])
    with pytest.raises(StateError, match="reset_state"):
        model.run_entry("add", [f32(1, 2), 5, 0])
    model.reset_state()
    assert model.run_entry("add", [f32(1, 2), 5, 0]).tolist() == [3, 5]


def test_inputs_are_numbers_lists_and_any_layout(model: Model) -> None:
    strided = np.arange(4, dtype=np.float32)[::2]
    assert model.run_entry("add", {"x": strided, "divisor": 10, "at": 1}).tolist() == [2, 4]
    assert model.run_entry("add", [[1.0, 2.0], np.int32(10), np.array(0, np.int32)]).shape == (2,)


def test_a_second_thread_waits(model: Model) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                model.run_entry("add", [f32(1, 1), 10, 0])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert model.state("total").tolist() == [200, 200]


@pytest.mark.parametrize("wanted", [None, "f32", "bf16", "int8", "int8_group", "int4",
                                    {"linear.*": "int8"}])  # fmt: skip
def test_weights_formats(tmp_path: Path, wanted: Any) -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(64, 64)).astype(np.float32)
    x = rng.normal(size=64).astype(np.float32)
    program = checked(tmp_path, COUNTER)
    made = load(program, generics={"N": 64}, weights={"linear.weight": weight},
                weights_format=wanted)  # fmt: skip
    got, want = made.run_entry("project", [x]), weight @ x
    error = float(np.abs(got - want).max() / np.abs(want).max())
    bound = {None: 1e-6, "f32": 1e-6, "bf16": 2e-2, "int4": 0.15}
    assert error < bound.get(wanted if isinstance(wanted, str | None) else "", 2e-2)
    if wanted in (None, "f32"):  # given back from the packed form
        assert difference(made.parameters["linear.weight"], weight) == 0.0


@pytest.mark.parametrize("wanted", ["int4", {"*": "int4"}, {"*": "int8_group"}], ids=str)
def test_weights_too_large_for_a_format_are_refused(program: Any, wanted: Any) -> None:
    weight = np.ones((64, 64), np.float32)
    weight[3] = 1e7
    given: dict[str, Any] = {"generics": {"N": 64}, "weights": {"linear.weight": weight}}
    said = "weight `linear.weight`: a group of weights reaches 1e.07.*; f32, bf16 and int8 hold it"
    for _ in range(2):
        made = load(program, **given, weights_format=wanted)
        with pytest.raises(NativeError, match=said):
            made.run_entry("project", [np.ones(64, np.float32)])
    made = load(program, **given, weights_format="int8")
    got = made.run_entry("project", [np.ones(64, np.float32)])
    assert difference(got / weight.sum(1), np.ones(64, np.float32)) < 2e-2


def test_blocks_of_a_gguf_are_used_as_they_are() -> None:
    rng = np.random.default_rng(1)
    scale = rng.normal(size=(4, 2, 1)).astype(np.float16)
    whole = rng.integers(-127, 128, (4, 2, 32)).astype(np.int8)
    blocks = np.concatenate([scale.view(np.uint8), whole.view(np.uint8)], axis=2).reshape(-1)
    want = (scale.astype(np.float32) * whole).reshape(4, 64)
    item = Weight((4, 64), np.dtype(np.float32), None, blocks, "Q8_0")
    weights = Weights({"w": item, "tied": item}, "int8")
    assert weights.packed("w") == weights.packed("tied")
    assert item.array is None  # no round trip through floats
    weights.release()
    assert item.array is None and item.blocks is None
    assert difference(weights.array("w"), want) == 0.0
    weights.release()
    assert item.array is None
    floats = Weights({"w": Weight((4, 64), np.dtype(np.float32), None, blocks, "Q8_0")}, None)
    assert floats.packed("w")
    floats.release()
    assert floats.items["w"].blocks is None
    assert difference(floats.array("w"), want) == 0.0


def test_unknown_options_name_the_known_ones(program: Any) -> None:
    with pytest.raises(ValueError, match="numerics is one of exact, equivalent, fast"):
        load(program, generics={"N": 2}, numerics="quick")
    with pytest.raises(ValueError, match="weights_format is one of f32, bf16, int8"):
        load(program, generics={"N": 2}, weights_format="int3")
    with pytest.raises(ValueError, match="runs on the cpu"):
        load(program, generics={"N": 2}, device="cuda")
