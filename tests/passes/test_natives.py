from __future__ import annotations

from typing import Any

import numpy as np

from linnet.ir import Op, Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import Call
from linnet.ir.walk import walk
from linnet.passes import Lowered, NativeChoice, NativeQuery, bind, lower

SIZES = {"H": 4, "Layers": 3, "MaxSeq": 6}


def _select(query: NativeQuery) -> NativeChoice | None:
    if query.origin == "m::write_at":
        return NativeChoice("write", query.call.operands, {"update": 0})
    if query.origin == "m::linear" and len(query.call.operands) == 2:
        x, weight = query.call.operands
        return NativeChoice("product", (weight, x))  # in another order
    return None


def _write(call: Call) -> Any:
    cache, value, at = call.operands
    new = np.array(cache)
    new[int(at)] = value[0]
    return new


NATIVES = {"write": _write, "product": lambda call: call.operands[1] @ call.operands[0].T}


def _lowered(toy: Program, weights: dict[str, Any]) -> Lowered:
    binding = bind(toy, "Model", SIZES)
    return lower(binding, ["decode"], present=frozenset(weights), select=_select)


def _natives(low: Lowered) -> list[Op]:
    return [op for f in low.functions.values() for op in walk(f) if op.kind == "native"]


def test_chosen_calls_become_natives(toy: Program, weights: dict[str, Any]) -> None:
    low = _lowered(toy, weights)
    assert {op.attrs["kernel"] for op in _natives(low)} == {"write", "product"}
    assert {op.attrs["origin"] for op in _natives(low)} == {"m::write_at", "m::linear"}
    assert "write_at" not in low.functions and "linear" in low.functions


def test_cache_writes_happen_in_place(toy: Program, weights: dict[str, Any]) -> None:
    low = _lowered(toy, weights)
    writes = [op for op in _natives(low) if op.attrs["kernel"] == "write"]
    assert len(writes) == 3 and all(op.attrs["in_place"] for op in writes)
    ends = [op for f in low.functions.values() for op in walk(f) if op.kind == "state_write"]
    assert all(op.attrs["done"] for op in ends)


def test_natives_give_the_same_values(toy: Program, weights: dict[str, Any]) -> None:
    low = _lowered(toy, weights)
    want = Evaluator(toy, root="m::Model", generics=SIZES, params=weights)
    have = Evaluator(
        low.functions, toy.blocks, root="m::Model", generics=SIZES, params=weights, natives=NATIVES
    )
    for pos in range(3):
        x = np.full((1, 4), pos + 1.5, np.float32)
        a = want.run("m::Model.decode", [x, pos])
        np.testing.assert_allclose(a, have.run(low.entries["decode"], [x, pos]), rtol=1e-5)


def test_queries_show_the_specialised_call(toy: Program, weights: dict[str, Any]) -> None:
    seen: list[NativeQuery] = []

    def select(query: NativeQuery) -> NativeChoice | None:
        seen.append(query)
        return None

    binding = bind(toy, "Model", SIZES)
    low = lower(binding, ["decode"], present=frozenset(weights), select=select)
    assert {query.origin for query in seen} == {"m::linear", "m::write_at"}
    for query in seen:
        types = [p.type for p in query.callee.params]
        assert [v.type for v in query.call.operands] == types
    assert not _natives(low)
