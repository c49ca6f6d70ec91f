"""Differentiating: through bodies, through `grad` clauses, and weights that change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import linnet.torch
from linnet.torch import Model

from .support import checked
from .toy import GENERICS, TOY


def load(folder: Path, **options: Any) -> Model:
    model = linnet.torch.load(checked(folder, TOY), generics=GENERICS, trainable=True, **options)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


TOKENS = torch.tensor([[1, 2, 3], [4, 5, 10]], dtype=torch.int32)


def slopes(model: Model) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(TOKENS).square().mean().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def test_gradients_agree_in_every_numerics(tmp_path: Path) -> None:
    exact = slopes(load(tmp_path, numerics="exact"))
    fast = slopes(load(tmp_path, numerics="fast"))
    assert set(exact) == set(fast) == set(load(tmp_path).state_dict())
    for name, slope in exact.items():
        assert torch.allclose(fast[name], slope, atol=1e-4 * float(slope.abs().max())), name


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_a_step_of_an_optimiser_changes_the_next_call(tmp_path: Path, numerics: str) -> None:
    model = load(tmp_path, numerics=numerics)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        optimiser.zero_grad()
        loss = model(TOKENS).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_state_carries_no_gradient(tmp_path: Path) -> None:
    model = load(tmp_path)
    out = model.run_entry("step", [TOKENS[:, :1], 0])
    assert not out.requires_grad
    assert not model.state("layers.0.cache").requires_grad


def test_without_trainable_nothing_requires_gradients(tmp_path: Path) -> None:
    model = linnet.torch.load(checked(tmp_path, TOY), generics=GENERICS)
    assert not any(p.requires_grad for p in model.parameters())
    assert not model(TOKENS).requires_grad


CLAUSE = """
module m
op tripled<N: Dim>(x: Tensor[N; f32], ids: Tensor[N; i32], w: Tensor[N; f32], s: f32)
    -> Tensor[N; f32] {
    return x * w * s
} grad(y, dy) {
    return (dy * 3.0 + cast<f32>(ids), dy * y * s)
}
pub entry run<N: Dim>(x: Tensor[N; f32], ids: Tensor[N; i32], w: Tensor[N; f32], s: f32)
    -> Tensor[N; f32] {
    return tripled(x * 2.0, ids, w, s)
}
"""


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_grad_clauses_take_the_place_of_autograd(tmp_path: Path, numerics: str) -> None:
    model = linnet.torch.load(checked(tmp_path, CLAUSE), trainable=True, numerics=numerics)
    x, w = (torch.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    y = model(x, torch.tensor([5, 6], dtype=torch.int32), w, 0.5)
    assert y.tolist() == [3.0, 8.0]
    y.backward(torch.tensor([1.0, -1.0]))
    assert x.grad is not None and w.grad is not None
    assert x.grad.tolist() == [2 * (3.0 + 5), 2 * (-3.0 + 6)]
    assert w.grad.tolist() == [1.0 * 3 * 0.5, -1.0 * 8 * 0.5]


LIBRARY: dict[str, tuple[str, Callable[[], list[torch.Tensor]]]] = {
    "std.nn.activations::sigmoid": ("sigmoid(x)", lambda: [torch.randn(40) * 5]),
    "std.nn.activations::silu": ("silu(x)", lambda: [torch.randn(40) * 5]),
    "std.nn.parallel::all_reduce": ("all_reduce(x)", lambda: [torch.randn(40)]),
    "std.nn.parallel::shared": ("shared(x)", lambda: [torch.randn(40)]),
}


def test_every_clause_of_the_library_is_looked_at(tmp_path: Path) -> None:
    uses = "\n".join(f"use {module}" for module in STD_MODULES)
    program = checked(tmp_path, f"module m\n{uses}\npub entry run(x: f32) -> f32 {{ return x }}\n")
    clauses = {f.name for f in program.functions.values() if f.grad is not None}
    assert clauses == set(LIBRARY)


STD_MODULES = [
    "std.nn.activations", "std.nn.attention", "std.nn.cache", "std.nn.decoding",
    "std.nn.embedding", "std.nn.linear", "std.nn.loss", "std.nn.mlp", "std.nn.moe", "std.nn.norm",
    "std.nn.parallel", "std.nn.recurrent", "std.nn.rope", "std.nn.softmax", "std.random",
]  # fmt: skip


@pytest.mark.parametrize("path", list(LIBRARY))
def test_library_clauses_agree_with_autograd_through_the_body(path: str, tmp_path: Path) -> None:
    call, make = LIBRARY[path]
    module, _, op = path.partition("::")
    text = (
        f"module m\nuse {module}::{{{op}}}\n"
        f"pub entry run<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] {{ return {call} }}\n"
    )
    program = checked(tmp_path, text)
    torch.manual_seed(1)
    (value,) = make()
    x = value.clone().requires_grad_()
    linnet.torch.load(program, numerics="exact", trainable=True)(x).sin().sum().backward()
    body = value.clone().requires_grad_()
    plain = linnet.torch.load(program, numerics="exact")
    plain(value)  # generates and loads the code, whose ops then have no clauses
    plain._live.loaded[("run", ())].function(body).sin().sum().backward()
    assert x.grad is not None and body.grad is not None
    assert torch.allclose(x.grad, body.grad, atol=1e-5)
