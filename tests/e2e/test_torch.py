"""What PyTorch's own tools do with a model: weights changed, copies, gradients, compilers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from .programs import Runner, floats, same, values
from .test_blocks import COUNTER, NETWORK, gate, network_weights

torch: Any = pytest.importorskip("torch")


def test_parameters_are_named_by_their_paths(run_torch: Runner) -> None:
    w = network_weights(4)
    model = run_torch.load(NETWORK, {"H": 3, "Layers": 4}, w, root="Net")
    assert sorted(model.state_dict()) == sorted(w)


def test_weights_changed_in_place_and_by_load_state_dict(run_torch: Runner) -> None:
    w = network_weights(2)
    model = run_torch.load(NETWORK, {"H": 3, "Layers": 2}, w, root="Net")
    x = floats(1, 3)
    before = values(model(x)) if "forward" in model.entries() else None
    assert before is None  # no entry is called `forward`: there is no default one
    model.run_entry("main", [x])
    changed = {name: value * 2 for name, value in w.items()}
    model.load_state_dict({name: torch.from_numpy(value) for name, value in changed.items()})
    want = x
    for k in range(2):
        want = want + gate(changed, f"layers.{k}", want)
    same(values(model.run_entry("main", [x])), want, 1e-4)
    with torch.no_grad():
        dict(model.named_parameters())["layers.1.scale"].zero_()
    changed["layers.1.scale"] = np.zeros(3, np.float32)
    want = x + gate(changed, "layers.0", x)
    same(values(model.run_entry("main", [x])), want + 0 * x, 1e-4)


def test_a_copy_has_a_state_of_its_own(run_torch: Runner) -> None:
    model = run_torch.load(COUNTER, root="Main")
    model.run_entry("push", [floats(2)])
    other = copy.deepcopy(model)
    other.run_entry("push", [floats(2)])
    assert values(model.run_entry("read"))[1] == 1
    assert values(other.run_entry("read"))[1] == 2


GRADIENTS = """
op cube<*S: Shape>(x: Tensor[*S; f32]) -> Tensor[*S; f32] {
    return x * x * x
} grad(_, dy) {
    return dy * 10
}
pub block Main<H: Dim> {
    param w: Tensor[H; f32]
    buffer b: Tensor[H; f32]
    pub entry forward<N: Dim>(x: Tensor[N, H; f32]) -> f32 {
        let y = cube(x * w + b)
        let s = sum[n, h] y[n, h] * x[n, h]
        return s
    }
}
"""


def test_gradients_honour_the_clause(run_torch: Runner) -> None:
    w, b, x = floats(3), floats(3, seed=1), floats(4, 3, seed=2)
    model = run_torch.load(GRADIENTS, {"H": 3}, {"w": w, "b": b}, trainable=True)
    loss = model(x)
    loss.backward()
    same(float(loss), float(((x * w + b) ** 3 * x).sum()), 1e-4)
    params = dict(model.named_parameters())
    assert list(params) == ["w"]  # a buffer is not trained
    same(values(params["w"].grad), (10 * x * x).sum(0), 1e-4)
    taken = torch.optim.SGD(model.parameters(), 0.1)
    taken.step()
    stepped = w - np.float32(0.1) * (10 * x * x).sum(0)
    same(float(model(x)), float(((x * stepped + b) ** 3 * x).sum()), 1e-3)


def test_gradients_reach_the_inputs(run_torch: Runner) -> None:
    model = run_torch.load(GRADIENTS, {"H": 3}, {"w": floats(3), "b": floats(3)}, trainable=True)
    x = torch.ones(1, 3, requires_grad=True)
    (given,) = torch.autograd.grad(model(x), x)
    w = torch.from_numpy(floats(3))
    assert torch.allclose(given[0], (w + w) ** 3 + 10 * w)


@pytest.mark.parametrize("compile", [True, "inductor"])
def test_compile_modes_agree(run_torch: Runner, compile: object) -> None:
    if compile == "inductor" and run_torch.numerics == "exact":
        pytest.skip("one compilation is enough")
    w = network_weights(2)
    options = {"generics": {"H": 3, "Layers": 2}, "weights": w, "root": "Net"}
    x = floats(2, 3)
    want = values(run_torch.load(NETWORK, **options).run_entry("main", [x]))
    same(
        values(run_torch.load(NETWORK, **options, compile=compile).run_entry("main", [x])),
        want,
        1e-4,
    )
