"""Joined products: which are joined, where the parameters lie, and that the values stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.passes.test_lower import verified

import linnet
from linnet.ir import Op, Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import Call
from linnet.ir.walk import walk
from linnet.passes import Lowered, NativeChoice, NativeQuery, Storage, bind, lower
from linnet.passes.join import JOINED, unread

NET = """
module net
use std.nn.activations::{silu}
use std.nn.linear::{Linear, linear}

block Layer<H: Dim> {
    sub a: Linear<H, 2 * H, f32>
    sub b: Linear<H, H, f32>
    sub c: Linear<H, 5, f32>
    param scale: Tensor[H; f32]

    pub fn forward<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        let wide = a.forward(x)
        let gated = silu(wide[:, 0:H]) * b.forward(x) * scale
        let few = c.forward(x)
        return gated + few[:, 0:1] + b.forward(wide[:, H:2 * H])
    }

    pub fn swapped<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        return b.forward(x) + a.forward(x)[:, 0:H] + c.forward(x)[:, 0:1]
    }

    pub fn fewer<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        return b.forward(x) + c.forward(x)[:, 0:1]
    }

    pub fn sometimes<R: Dim>(x: Tensor[R, H; f32], both: bool) -> Tensor[R, H; f32] {
        let y = b.forward(x)
        return if both { y + c.forward(x)[:, 0:1] } else { y }
    }
}

pub block Net<H: Dim, Layers: Dim> {
    sub layers: [Layer<H>; Layers]
    sub p: Linear<H, H, f32>
    sub q: Linear<H, H, f32>

    pub entry run<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        var y = x
        static for layer in layers {
            y = layer.forward(y)
        }
        return p.forward(y) + q.forward(y)
    }

    pub entry swapped<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        var y = x
        static for layer in layers {
            y = layer.swapped(y)
        }
        return y
    }

    pub entry fewer<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        var y = x
        static for layer in layers {
            y = layer.fewer(y)
        }
        return y
    }

    pub entry sometimes<R: Dim>(x: Tensor[R, H; f32], both: bool) -> Tensor[R, H; f32] {
        var y = x
        static for layer in layers {
            y = layer.sometimes(y, both)
        }
        return y
    }

    pub entry other<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        return p.forward(x) + q.forward(x + 1.0)
    }

    pub entry made<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        return p.forward(x) + linear(x, q.weight + 1.0)
    }
}
"""
SIZES = {"H": 4, "Layers": 3}
ABC = tuple(f"layers.{{}}.{name}.weight" for name in "abc")


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("net") / "net.linnet"
    path.write_text(NET, encoding="utf-8")
    return linnet.load_program(path)


def select(query: NativeQuery) -> NativeChoice | None:
    if query.origin != "std.nn.linear::linear":
        return None
    joins = tuple(range(1, len(query.call.operands)))
    return NativeChoice("linear", query.call.operands, {"joins": joins})


def linear(call: Call) -> Any:
    x, weight, *bias = call.operands
    return (x @ weight.T + (bias[0] if bias else 0)).astype(np.float32)


def lowered(
    net: Program, entry: str, *, biases: tuple[str, ...] = (), storage: Storage | None = None,
    sizes: Mapping[str, int] = SIZES, chosen: Any = select,
) -> Lowered:  # fmt: skip
    binding = bind(net, "Net", sizes)
    present = {p.path for p in binding.params if not p.optional or p.path in biases}
    seen: list[str] = []
    return lower(binding, [entry], present=frozenset(present), select=chosen, storage=storage,
                 observe=verified(seen))  # fmt: skip


def products(low: Lowered) -> list[Op]:
    return [op for f in low.functions.values() for op in walk(f) if op.kind == "native"]


def groups(low: Lowered) -> list[tuple[str, ...]]:
    return [joined.paths for joined in low.joined]


def values(net: Program, low: Lowered, entry: str, *inputs: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    params = {p.path: rng.normal(size=[d.constant or 0 for d in p.type.dims]).astype(np.float32)
              for p in low.binding.params}  # fmt: skip
    used = {k: v for k, v in params.items() if "bias" not in k}
    want = Evaluator(net, root="net::Net", generics=SIZES, params=used)
    have = Evaluator(low.functions, net.blocks, root="net::Net", generics=SIZES, params=used,
                     natives={"linear": linear})  # fmt: skip
    size = {"R": inputs[0].shape[0]}
    made = low.functions[low.entries[entry]]
    sizes = {g.name: size["R"] for g in made.generics}
    return (want.run(f"net::Net.{entry}", list(inputs), generics=size),
            have.run(made.name, list(inputs), generics=sizes))  # fmt: skip


def test_products_of_one_input_are_one(net: Program) -> None:
    low = lowered(net, "run")
    assert [len(op.operands) for op in products(low)] == [2] * 3  # 6 before: a b c, b, p q
    first = tuple(path.format(k) for k in range(3) for path in ABC)
    assert groups(low) == [first[:3], first[3:6], first[6:], ("p.weight", "q.weight")]
    assert low.joined[1].block == "layers.1" and low.joined[1].name == "a_b_c_weight"
    assert (low.joined[3].block, low.joined[3].name) == ("", "p_q_weight")
    for rows in (0, 1, 5):
        x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        want, have = values(net, low, "run", x)
        np.testing.assert_allclose(have, want, rtol=2e-5, atol=1e-5)


def test_what_is_joined_is_one_storage_in_all_entries(net: Program) -> None:
    first = lowered(net, "run")
    storage = Storage(groups=first.joined)
    again = lowered(net, "swapped", storage=storage)  # in another order there
    assert groups(again) == groups(first)[:3] and len(products(again)) == 1
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    want, have = values(net, again, "swapped", x)
    np.testing.assert_allclose(have, want, rtol=2e-5, atol=1e-5)
    part = lowered(net, "fewer", storage=storage)  # a part of it: each by itself
    assert part.joined == () and len(products(part)) == 2
    assert groups(lowered(net, "fewer")) == [
        (f"layers.{k}.b.weight", f"layers.{k}.c.weight") for k in range(3)
    ]


def test_parameters_read_alone_are_known(net: Program) -> None:
    low = lowered(net, "run")
    idle = unread(low.functions, [low.entries["run"]], low.binding.root)
    alone = {f"layers.{k}.b.weight" for k in range(3)}  # of the second product
    biases = {p.path for p in low.binding.params if p.optional}
    assert idle == {path for group in groups(low) for path in group} - alone | biases


def test_biases_lie_together_too(net: Program) -> None:
    low = lowered(net, "run", biases=("p.bias", "q.bias"))
    assert groups(low)[-2:] == [("p.weight", "q.weight"), ("p.bias", "q.bias")]
    mixed = lowered(net, "run", biases=("p.bias",))  # one with, one without: apart
    assert groups(low)[:3] == groups(mixed)


def test_layers_that_differ_are_joined_each_in_its_way(net: Program) -> None:
    low = lowered(net, "run", biases=("layers.1.c.bias",))
    assert [group for group in groups(low) if group[0].startswith("layers.1")] == [
        ("layers.1.a.weight", "layers.1.b.weight")
    ]
    assert ("layers.0.a.weight", "layers.0.b.weight", "layers.0.c.weight") in groups(low)


def test_tied_tensors_lie_in_one_place(net: Program) -> None:
    tied = {"p.weight": "p.weight", "layers.1.b.weight": "p.weight"}
    low = lowered(net, "run", storage=Storage(tied=tied))
    held = [tied.get(path, path) for group in groups(low) for path in group]
    assert len(held) == len(set(held)) and ("p.weight", "q.weight") not in groups(low)
    same = Storage(tied={"p.weight": "p.weight", "q.weight": "p.weight"})
    assert ("p.weight", "q.weight") not in groups(lowered(net, "run", storage=same))


def test_only_alike_parameters_lie_together(net: Program) -> None:
    kinds = {f"layers.{k}.c.weight": "int8" for k in range(3)}
    low = lowered(net, "run", storage=Storage(kinds=kinds))
    assert groups(low)[0] == ("layers.0.a.weight", "layers.0.b.weight")
    apart = {**kinds, "layers.2.a.weight": "f32"}  # one layer decides for the function it shares
    assert groups(lowered(net, "run", storage=Storage(kinds=apart))) == [("p.weight", "q.weight")]


@pytest.mark.parametrize("entry", ["other", "made", "sometimes"])
def test_near_misses_stay(net: Program, entry: str) -> None:
    """Different inputs, a weight that is computed, a branch that may not run."""
    low = lowered(net, entry)
    assert low.joined == ()
    assert not any(op.attrs.get(JOINED) for f in low.functions.values() for op in walk(f))


def test_nothing_is_joined_where_no_native_asks(net: Program) -> None:
    assert lowered(net, "run", chosen=None).joined == ()


def test_methods_that_are_not_joined_stay_functions(net: Program) -> None:
    low = lowered(net, "other")
    assert sum(name.startswith("Linear_forward") for name in low.functions) == 1
