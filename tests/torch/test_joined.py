"""Parameters that lie in one storage: still their own, replaced in every way PyTorch has."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import linnet.torch as backend  # noqa: E402

H, LAYERS = 8, 2
NET = """
module net
use std.nn.activations::{silu}
use std.nn.linear::{Linear}

block Layer<H: Dim> {
    sub a: Linear<H, 2 * H, f32>
    sub b: Linear<H, H, f32>
    sub c: Linear<H, 5, f32>
    sub d: Linear<H, H, f32>

    pub fn forward<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        let wide = a.forward(x)
        let few = c.forward(x)
        return d.forward(silu(wide[:, 0:H]) * b.forward(x) + wide[:, H:2 * H] + few[:, 4:5])
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
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("net") / "net.linnet"
    path.write_text(NET, encoding="utf-8")
    return path


def tensors(biases: bool = False) -> dict[str, Any]:
    draw = torch.Generator().manual_seed(1)
    made = {}
    for k in range(LAYERS):
        for name, rows in (("a", 2 * H), ("b", H), ("c", 5), ("d", H)):
            made[f"layers.{k}.{name}.weight"] = torch.randn(rows, H, generator=draw) * 0.4
            if biases:
                made[f"layers.{k}.{name}.bias"] = torch.randn(rows, generator=draw)
    return made


def loaded(source: Path, biases: bool = False, **options: Any) -> Any:
    sizes = {"H": H, "Layers": LAYERS}
    return backend.load(source, generics=sizes, weights=tensors(biases), entry="run",
                        compile=False, **options)  # fmt: skip


@pytest.fixture
def pair(source: Path) -> tuple[Any, Any]:
    """A model whose products are joined, and one that runs every body."""
    return loaded(source), loaded(source, numerics="exact")


def agree(pair: tuple[Any, Any]) -> bool:
    """Whether both entries give the same on both models."""
    x = torch.linspace(-1, 1, 3 * H).reshape(3, H)
    return all(
        torch.allclose(*(model.run_entry(name, [x]) for model in pair), atol=2e-5, rtol=2e-4)
        for name in ("run", "alone")
    )


def layer(model: Any, index: int = 0) -> Any:
    return model.layers._modules[str(index)]


@pytest.mark.parametrize("biases", [False, True])
def test_one_product_and_one_copy(source: Path, biases: bool) -> None:
    model = loaded(source, biases)
    text = model.generated_source("run")
    assert text.count("F.linear(") == 2 and "block.a_c_b_weight" in text  # 4 without joining
    assert ("block.a_c_b_bias" in text) == biases
    assert agree((model, loaded(source, biases, numerics="exact")))
    for path, value in tensors(biases).items():
        assert torch.equal(model.get_parameter(path), value)
    held = {p.untyped_storage().data_ptr(): p.untyped_storage().nbytes()
            for p in model.parameters()}  # fmt: skip
    assert sum(held.values()) == sum(v.nbytes for v in tensors(biases).values())


def test_laid_out_at_load(source: Path) -> None:
    model = loaded(source)
    first, second = layer(model).a.weight, layer(model).b.weight
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    state = model.state_dict()
    with torch.no_grad():
        state["layers.0.a.weight"].fill_(0.25)  # seen by the product
    other = loaded(source, numerics="exact")
    with torch.no_grad():
        layer(other).a.weight.fill_(0.25)
    assert agree((model, other))


def test_changed_in_place(pair: tuple[Any, Any]) -> None:
    assert agree(pair)
    with torch.no_grad():
        for model in pair:
            layer(model, 1).c.weight.mul_(3.0)
    assert agree(pair)


def test_replaced_parameters_take_effect_and_old_ones_stay_theirs(pair: tuple[Any, Any]) -> None:
    assert agree(pair)
    before = [layer(model).b.weight for model in pair]
    kept = before[0].detach().clone()
    for model in pair:
        layer(model).b.weight = torch.nn.Parameter(torch.full((H, H), 0.1), requires_grad=False)
    assert agree(pair)
    assert torch.equal(before[0], kept)
    for model, old in zip(pair, before, strict=True):
        layer(model).b.weight = old
    assert agree(pair)


def test_data_and_state_dicts_take_effect(pair: tuple[Any, Any]) -> None:
    for model in pair:
        layer(model).a.weight.data = torch.full((2 * H, H), -0.2)
    assert agree(pair)
    fresh = {path: value * 0.5 for path, value in tensors().items()}
    for model in pair:
        model.load_state_dict(fresh)
    assert agree(pair)
    for model in pair:
        model.load_state_dict({k: v + 0.1 for k, v in fresh.items()}, assign=True)
    assert agree(pair)


def test_parameters_tied_afterwards_lie_in_one_place(pair: tuple[Any, Any]) -> None:
    assert agree(pair)
    for model in pair:
        layer(model).b.weight = layer(model, 1).b.weight
    assert agree(pair)
    with torch.no_grad():
        for model in pair:
            layer(model).b.weight.add_(0.5)
    assert agree(pair)
    assert layer(pair[0]).b.weight is layer(pair[0], 1).b.weight


def test_another_dtype_is_refused_as_the_product_refuses_it(pair: tuple[Any, Any]) -> None:
    joined, _ = pair
    layer(joined).b.weight = torch.nn.Parameter(torch.zeros(H, H, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="dtype"):
        joined.run_entry("run", [torch.ones(1, H)])
    layer(joined).b.weight = torch.nn.Parameter(torch.zeros(H, H), requires_grad=False)
    layer(pair[1]).b.weight = torch.nn.Parameter(torch.zeros(H, H), requires_grad=False)
    assert agree(pair)


def test_copies_have_storages_of_their_own(pair: tuple[Any, Any]) -> None:
    joined, exact = pair
    assert agree(pair)
    twin = copy.deepcopy(joined)
    with torch.no_grad():
        layer(joined).a.weight.zero_()
    assert agree((twin, exact)) and not agree(pair)


def test_training_joins_nothing(source: Path) -> None:
    model = loaded(source, trainable=True)
    assert "a_c_b_weight" not in model.generated_source("run")
    model(torch.ones(2, H)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
