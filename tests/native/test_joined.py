"""Joined projections on this backend: one packed matrix, one call, every format."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.native import Model, load
from linnet.native.runtime.library import Library
from linnet.native.runtime.packing import Weight, Weights

from .support import checked, difference

H, LAYERS = 32, 2
NET = """
module program
use std.nn.activations::{silu}
use std.nn.linear::{Linear}

block Layer<H: Dim> {
    sub a: Linear<H, 2 * H, f32>
    sub b: Linear<H, H, f32>
    sub c: Linear<H, 5, f32>

    pub fn forward<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        let wide = a.forward(x)
        let gated = silu(wide[:, 0:H]) * b.forward(x)
        let few = c.forward(x)
        return gated + few[:, 0:1] + wide[:, H:2 * H] + few[:, 4:5]
    }
}

pub block Net<H: Dim, Layers: Dim> {
    sub layers: [Layer<H>; Layers]

    pub entry run<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        var y = x
        static for layer in layers {
            y = layer.forward(y)
        }
        return y
    }

    pub entry alone<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        var y = x
        static for layer in layers {
            y = layer.b.forward(y)
        }
        return y
    }
}
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return checked(tmp_path_factory.mktemp("joined"), NET)


def tensors(biases: bool) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    made: dict[str, Any] = {}
    for k in range(LAYERS):
        for name, rows in (("a", 2 * H), ("b", H), ("c", 5)):
            made[f"layers.{k}.{name}.weight"] = rng.normal(size=(rows, H)).astype(np.float32) * 0.2
            if biases:
                made[f"layers.{k}.{name}.bias"] = rng.normal(size=rows).astype(np.float32)
    return made


def expected(net: Program, params: dict[str, Any], entry: str, x: Any) -> Any:
    sizes = {"H": H, "Layers": LAYERS}
    oracle = Evaluator(net, root="program::Net", generics=sizes, params=params)
    return oracle.run(f"program::Net.{entry}", [x], generics={"R": x.shape[0]})


def packed_bytes(model: Model) -> int:
    """What the model's packed matrices take, those that are parts of others not counted again."""
    library = Library.get()
    held = model._weights._made
    whole = {handle for (items, _), handle in held.items() if len(items) > 1}
    alone = {handle for (items, _), handle in held.items() if len(items) == 1}
    lying = {form.handle for item in model._weights.items.values() for form in item.forms.values()}
    return sum(library.c.linnet_k_bytes(handle) for handle in whole | (alone & lying))


@pytest.mark.parametrize("biases", [False, True])
def test_one_product_for_all_of_one_input(net: Program, biases: bool) -> None:
    params = tensors(biases)
    model = load(net, generics={"H": H, "Layers": LAYERS}, weights=params)
    text = model.generated_source("run")
    assert text.count("linnet::linear(") == 1  # three without joining
    for rows in (1, 3, 40):
        x = np.random.default_rng(rows).normal(size=(rows, H)).astype(np.float32)
        want = expected(net, params, "run", x)
        assert difference(model.run_entry("run", [x]), want) < 2e-4
        assert difference(model.run_entry("alone", [x]), expected(net, params, "alone", x)) < 2e-4
    for path, value in params.items():
        assert np.array_equal(model.parameters[path], value)
    stored = sum(v.nbytes for p, v in params.items() if "weight" in p)
    padding = 16 * H * 4 * LAYERS  # outputs are held in sixteens
    assert stored <= packed_bytes(model) <= stored + padding


def test_exact_numerics_join_nothing(net: Program) -> None:
    model = load(net, generics={"H": H, "Layers": LAYERS}, weights=tensors(False), numerics="exact")
    assert "linnet::linear(" not in model.generated_source("run")
    assert not model._weights.storage().groups


@pytest.mark.parametrize("wanted", ["bf16", "int8", "int8_group", "int4"])
def test_each_format_gives_what_it_gives_apart(net: Program, wanted: str) -> None:
    params = tensors(False)
    sizes = {"H": H, "Layers": LAYERS}
    joined = load(net, generics=sizes, weights=params, weights_format=wanted, numerics="equivalent")
    x = np.random.default_rng(1).normal(size=(2, H)).astype(np.float32)
    got = joined.run_entry("run", [x])
    rounded = {path: np.array(value) for path, value in joined.parameters.items()}
    assert difference(got, expected(net, rounded, "run", x)) < 2e-4
    for path, value in params.items():
        apart = Weights({path: Weight(value.shape, value.dtype, value)}, wanted)
        assert apart.packed(path)
        apart.release()
        assert np.array_equal(rounded[path], np.array(apart.array(path)))


@pytest.mark.parametrize("wanted", ["bf16", "int8", "int4"])
def test_looking_at_weights_changes_nothing(net: Program, wanted: str) -> None:
    params, sizes = tensors(False), {"H": H, "Layers": LAYERS}
    seen, other = (load(net, generics=sizes, weights=params, weights_format=wanted) for _ in "ab")
    before = {path: np.array(value) for path, value in seen.parameters.items()}
    assert not seen._weights._made
    x = np.random.default_rng(1).normal(size=(2, H)).astype(np.float32)
    assert np.array_equal(seen.run_entry("run", [x]), other.run_entry("run", [x]))
    assert packed_bytes(seen) == packed_bytes(other)
    for path, value in before.items():
        assert np.array_equal(value, seen.parameters[path])
        assert np.array_equal(value, other.parameters[path])


def test_a_tensor_of_two_paths_has_one_format() -> None:
    """The most exact that a linear layer asks for, whichever is called first."""
    value = np.random.default_rng(0).normal(size=(H, H)).astype(np.float32)
    wanted = {"a": "int4", "b": "int8", "plain": "f32"}
    for first, second in itertools.permutations("ab"):
        one = Weight(value.shape, value.dtype, value)
        items = dict.fromkeys(("a", "b", "plain", "unnamed"), one)
        weights = Weights(items, wanted, linear=lambda: frozenset("ab"))
        shown = np.array(weights.shown("a"))
        assert not np.array_equal(shown, value)
        for path in items:
            assert np.array_equal(weights.shown(path), shown)
        assert weights.packed(first) == weights.packed(second)
        weights.release()
        assert set(one.forms) == {"int8"}
        for path in items:
            assert np.array_equal(weights.array(path), shown)


def test_formats_that_differ_stay_apart(net: Program) -> None:
    params = tensors(False)
    model = load(net, generics={"H": H, "Layers": LAYERS}, weights=params,
                 weights_format={"*.c.*": "int8", "*": "f32"}, numerics="equivalent")  # fmt: skip
    assert model.generated_source("run").count("linnet::linear(") == 2
    assert model._weights.storage().groups[0].paths == ("layers.0.a.weight", "layers.0.b.weight")


def test_blocks_of_a_gguf_lie_together_as_they_are() -> None:
    rng = np.random.default_rng(1)

    def q8(rows: int) -> tuple[Weight, Any]:
        scale = rng.normal(size=(rows, 2, 1)).astype(np.float16)
        whole = rng.integers(-127, 128, (rows, 2, 32)).astype(np.int8)
        blocks = np.concatenate([scale.view(np.uint8), whole.view(np.uint8)], axis=2).reshape(-1)
        floats = (scale.astype(np.float32) * whole).reshape(rows, 64)
        return Weight((rows, 64), np.dtype(np.float32), None, blocks, "Q8_0"), floats

    made = {"a": q8(4), "b": q8(16), "c": q8(3)}
    weights = Weights({path: item for path, (item, _) in made.items()}, "int8")
    kinds = weights.storage().kinds
    assert len(set(kinds.values())) == 1 and "Q8_0" in kinds["a"]
    assert weights.packed(("a", "b", "c"))
    for path, (item, floats) in made.items():
        assert item.array is None  # no round trip through floats
        assert difference(weights.array(path), floats) == 0.0


def test_what_is_packed_alone_is_not_packed_again(net: Program) -> None:
    params = tensors(False)
    model = load(net, generics={"H": H, "Layers": LAYERS}, weights=params)
    x = np.ones((1, H), np.float32)
    model.run_entry("alone", [x])
    before = packed_bytes(model)
    got = model.run_entry("run", [x])  # now `a` and `c` lie together, `b` stays where it is
    assert difference(got, expected(net, params, "run", x)) < 2e-4
    assert packed_bytes(model) <= before + LAYERS * (2 * H + 16) * H * 4


def test_parameters_are_filled_before_the_first_call_and_read_only_after(net: Program) -> None:
    model = load(net, generics={"H": H, "Layers": LAYERS})
    params = tensors(False)
    for path, value in params.items():
        model.parameters[path][...] = value
    x = np.ones((1, H), np.float32)
    assert difference(model.run_entry("run", [x]), expected(net, params, "run", x)) < 2e-4
    with pytest.raises(ValueError, match="read-only"):
        model.parameters["layers.0.a.weight"][0] = 1.0
    with pytest.raises(TypeError):
        model.parameters["layers.0.a.weight"] = x  # type: ignore[index]
