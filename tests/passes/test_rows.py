"""Rows chosen before work on rows: what moves, what must not, and that the values stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.passes.test_lower import verified

import linnet
from linnet.dims import Dim
from linnet.ir import Op, Program
from linnet.ir.build import tensor_type
from linnet.ir.evaluate import Evaluator
from linnet.ir.walk import walk
from linnet.passes import Lowered, bind, lower

NET = """
module net
use std.nn.activations::{silu}
use std.nn.linear::{Linear}
use std.nn.norm::{rms_norm}

pub block Net<V: Dim, H: Dim> where H > 0 {
    sub mix: Linear<H, H, f32>
    param scale: Tensor[H; f32]
    sub head: Linear<H, V, f32>
    state seen: Tensor[H; f32]

    fn logits<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, V; f32] {
        return head.forward(rms_norm(x, scale, 1e-5)) * 2.0
    }

    fn running<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        return cumsum(x, axis = 0)
    }

    fn noting<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        seen = seen + 1.0
        return x * 2.0
    }

    fn sizes<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R, H; f32] {
        return x * cast<f32>(R)
    }

    fn every<B: Dim, S: Dim>(x: Tensor[B, S, H; f32]) -> Tensor[B, S, V; f32] {
        let places = cast<f32>(iota<i32>(S))
        let moved[b, s, h] = places[s] + x[b, s, h]
        return reshape(logits(reshape(mix.forward(moved), [B * S, H])), [B, S, V])
    }

    pub entry flat<B: Dim, S: Dim>(x: Tensor[B, S, H; f32]) -> Tensor[B, V; f32] where S > 0 {
        return reshape(logits(reshape(x, [B * S, H])), [B, S, V])[:, S - 1, :]
    }

    pub entry chain<B: Dim, S: Dim>(x: Tensor[B, S, H; f32]) -> Tensor[B, V; f32] where S > 0 {
        let z = silu(head.forward(rms_norm(x, scale, 1e-5))) * 3.0 + 1.0
        return z[:, S - 1, :]
    }

    pub entry called<B: Dim, S: Dim>(x: Tensor[B, S, H; f32]) -> Tensor[B, V; f32] where S > 0 {
        return every(x)[:, S - 1, :]
    }

    pub entry ends<B: Dim, S: Dim>(
        x: Tensor[B, S, H; f32],
        lengths: Tensor[B; i32],
    ) -> Tensor[B, V; f32]
    where S > 0 {
        let logits = every(x)
        let last[b, v] = logits[b, lengths[b] - 1, v]
        return last
    }

    pub entry sliced<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[1, V; f32] where R > 0 {
        return logits(x)[R - 1:R, :]
    }

    pub entry both<R: Dim>(x: Tensor[R, H; f32]) -> (Tensor[V; f32], Tensor[R, V; f32])
    where R > 0 {
        let z = logits(x)
        return (z[R - 1, :], z)
    }

    pub entry columns<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[R; f32] where V > 0 {
        return logits(x)[:, 0]
    }

    pub entry order<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[H; f32] where R > 0 {
        return running(x)[R - 1, :]
    }

    pub entry notes<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[H; f32] where R > 0 {
        let y = noting(x)[R - 1, :]
        return y + seen
    }

    pub entry counts<R: Dim>(x: Tensor[R, H; f32]) -> Tensor[H; f32] where R > 0 {
        return sizes(x)[R - 1, :]
    }

    pub entry many<R: Dim, M: Dim>(x: Tensor[R, H; f32], at: Tensor[M; i32]) -> Tensor[M, V; f32] {
        let z = logits(x)
        let picked[m, v] = z[at[m], v]
        return picked
    }
}
"""
SIZES = {"V": 5, "H": 4}


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("net") / "net.linnet"
    path.write_text(NET, encoding="utf-8")
    return linnet.load_program(path)


def lowered(net: Program, entry: str, optimize: bool = True) -> Lowered:
    binding = bind(net, "Net", SIZES)
    present = frozenset(p.path for p in binding.params if not p.optional)
    seen: list[str] = []
    return lower(binding, [entry], present=present, optimize=optimize, observe=verified(seen))


def products(low: Lowered) -> list[tuple[Dim, ...]]:
    """The rows of each product over weights, in the entry's own sizes."""
    found: list[tuple[Dim, ...]] = []

    def visit(name: str, sizes: dict[Any, Dim]) -> None:
        for op in walk(low.functions[name].body):
            if op.kind == "contract" and op.operands[0] is not op.operands[1]:
                dims = tensor_type(op.result).dims[:-1]
                found.append(tuple(dim.substitute(sizes) for dim in dims))
            if op.kind == "call":
                callee = low.functions[op.attrs["callee"]]
                inner = {g.var: d.substitute(sizes) for g, d in
                         zip(callee.generics, op.attrs["generics"], strict=True)}  # fmt: skip
                visit(op.attrs["callee"], inner)

    name = next(iter(low.entries.values()))
    visit(name, {})
    return found


def check(net: Program, low: Lowered, entry: str, inputs: list[Any], sizes: dict[str, int]) -> None:
    rng = np.random.default_rng(5)
    params = {p.path: rng.normal(size=[d.constant or 0 for d in p.type.dims]).astype(np.float32)
              for p in low.binding.params if not p.optional}  # fmt: skip
    want = Evaluator(net, root="net::Net", generics=SIZES, params=params)
    have = Evaluator(low.functions, net.blocks, root="net::Net", generics=SIZES, params=params)
    made = low.functions[low.entries[entry]]
    a = want.run(f"net::Net.{entry}", inputs, generics=sizes)
    b = have.run(made.name, inputs, generics={g.name: sizes[g.name] for g in made.generics})
    for x, y in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,),
                    strict=True):  # fmt: skip
        np.testing.assert_allclose(y, x, rtol=2e-5, atol=1e-5)


def texts(rows: list[tuple[Dim, ...]]) -> list[str]:
    return ["*".join(str(dim) for dim in dims) for dims in rows]


@pytest.mark.parametrize(
    ("entry", "before", "after"),
    [
        ("flat", ["B * S"], ["B"]),
        ("chain", ["B*S"], ["B*1"]),
        ("called", ["B*S", "B * S"], ["B*1", "B"]),
        ("ends", ["B*S", "B * S"], ["B*S", "B"]),
        ("sliced", ["R"], ["1"]),
    ],
)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 7)])
def test_only_the_rows_asked_for_are_computed(
    net: Program, entry: str, before: list[str], after: list[str], shape: tuple[int, int]
) -> None:
    low = lowered(net, entry)
    assert texts(products(lowered(net, entry, optimize=False))) == before
    assert texts(products(low)) == after
    rows, count = shape
    sizes = {"B": rows, "S": count, "R": count}
    dims = (count, 4) if entry == "sliced" else (rows, count, 4)
    x = np.random.default_rng(1).normal(size=dims).astype(np.float32)
    more = [np.arange(rows, dtype=np.int32) % count + 1] if entry == "ends" else []
    check(net, low, entry, [x, *more], sizes)


@pytest.mark.parametrize("entry", ["both", "columns", "order", "notes", "counts", "many"])
def test_near_misses_stay(net: Program, entry: str) -> None:
    """All rows are read; not rows are taken; rows depend on each other, on state, on their number;
    as many rows may be asked for as there are."""
    low, plain = lowered(net, entry), lowered(net, entry, optimize=False)
    assert texts(products(low)) == texts(products(plain))
    kinds = ("cumsum", "dim", "state_write")
    for kind in kinds:
        assert _count(low, kind) <= _count(plain, kind)
    x = np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)
    more = [np.array([2, 0], np.int32)] if entry == "many" else []
    check(net, low, entry, [x, *more], {"R": 3, "M": 2})


def _count(low: Lowered, kind: str) -> int:
    return sum(op.kind == kind for f in low.functions.values() for op in walk(f))


def test_an_index_outside_is_refused_as_before(net: Program) -> None:
    low = lowered(net, "ends")
    x = np.zeros((1, 2, 4), np.float32)
    with pytest.raises(Exception, match=r"range|lies|outside"):
        check(net, low, "ends", [x, np.array([4], np.int32)], {"B": 1, "S": 2})


def test_calls_that_lost_their_reader_are_gone(net: Program) -> None:
    low = lowered(net, "called")
    calls: list[Op] = [op for f in low.functions.values() for op in walk(f) if op.kind == "call"]
    assert len({op.attrs["callee"] for op in calls}) == len(low.functions) - 1
    assert sum(op.attrs["callee"].startswith("Net_logits") for op in calls) == 1
