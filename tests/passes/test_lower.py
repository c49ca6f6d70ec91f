"""Specialising and every pass after it, against the evaluator on the generic program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linnet.ir import Function, Op, Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.verify import verify
from linnet.ir.walk import walk
from linnet.passes import BindError, Lowered, bind, lower
from linnet.passes.module import Module
from linnet.types import OptionalType, PackVar, TensorType

SIZES = {"H": 4, "Layers": 3, "MaxSeq": 6}
Weights = dict[str, np.ndarray[Any, Any]]


def verified(seen: list[str]) -> Any:
    def observe(name: str, module: Module) -> None:
        seen.append(name)
        for function in module.functions.values():
            verify(function, module.functions)

    return observe


def lowered(toy: Program, weights: Weights, **options: Any) -> Lowered:
    binding = bind(toy, "Model", SIZES)
    return lower(binding, ["decode", "forward"], present=frozenset(weights), **options)


def runner(toy: Program, low: Lowered, weights: Weights) -> Evaluator:
    return Evaluator(low.functions, toy.blocks, root="m::Model", generics=SIZES, params=weights)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("trainable", [False, True])
def test_same_values_bit_for_bit(
    toy: Program, weights: Weights, optimize: bool, trainable: bool
) -> None:
    low = lowered(toy, weights, optimize=optimize, trainable=trainable, observe=verified([]))
    rng = np.random.default_rng(3)
    want = Evaluator(toy, root="m::Model", generics=SIZES, params=weights)
    have = runner(toy, low, weights)
    for pos in range(4):
        x = rng.normal(size=(1, 4)).astype(np.float32)
        a = want.run("m::Model.decode", [x, pos])
        assert np.array_equal(a, have.run(low.entries["decode"], [x, pos]))
    assert all(np.array_equal(want.state[path], have.state[path]) for path in want.state)
    for size in (1, 2, 5):
        x = rng.normal(size=(size, 4)).astype(np.float32)
        a = want.run("m::Model.forward", [x])
        assert np.array_equal(a, have.run(low.entries["forward"], [x]))


def test_passes_in_order(toy: Program, weights: Weights) -> None:
    seen: list[str] = []
    lowered(toy, weights, observe=verified(seen))
    assert seen == (
        "specialise simplify unbind inline simplify share rows drop natives drop join drop prepare "
        "hoist unwrap share drop trim drop state rename".split()
    )


def test_nothing_generic_is_left(toy: Program, weights: Weights) -> None:
    low = lowered(toy, weights, optimize=False)
    for function in low.functions.values():
        assert {g.kind for g in function.generics} <= {"Dim"}
        own = {g.var for g in function.generics}
        for op in walk(function):
            assert op.kind not in ("match_sub", "match_optional")
            for value in op.results:
                assert _symbols(value.type) <= own


def _symbols(type_: object) -> set[object]:
    if isinstance(type_, OptionalType):
        return _symbols(type_.inner)
    if not isinstance(type_, TensorType):
        return set()
    assert not any(isinstance(item, PackVar) for item in type_.shape)
    return {symbol for dim in type_.dims for symbol in dim.symbols}


def _calls(function: Function) -> list[Op]:
    return [op for op in walk(function) if op.kind == "call"]


def test_alike_layers_are_one_loop(toy: Program, weights: Weights) -> None:
    everything = {**weights}
    like = {k: v for k, v in weights.items() if k.startswith("layers.0.")}
    for k in (1, 2):
        everything.update({n.replace("layers.0", f"layers.{k}"): v for n, v in like.items()})
    low = lowered(toy, everything)
    (loop,) = [op for op in walk(low.functions["Model_decode"]) if op.kind == "for_subs"]
    assert "start" not in loop.attrs
    low = lowered(toy, weights)
    loops = [op for op in walk(low.functions["Model_decode"]) if op.kind == "for_subs"]
    assert [(op.attrs["start"], op.attrs["stop"]) for op in loops] == [(0, 1), (1, 2), (2, 3)]


def test_names_do_not_depend_on_sizes(toy: Program) -> None:
    def names(**sizes: int) -> list[str]:
        binding = bind(toy, "Model", {**SIZES, **sizes})
        present = frozenset(p.path for p in binding.params if not p.optional)
        return list(lower(binding, ["decode", "forward"], present=present).functions)

    assert names() == names(Layers=36) == names(MaxSeq=1000)
    assert names(Layers=0)[-1] == "Model_forward"


def test_work_of_a_loop_is_done_once(toy: Program, weights: Weights) -> None:
    """The table is prepared, its row and both masks are made once a call, not once a layer."""
    low = lowered(toy, weights)
    once = [op.attrs["callee"] for op in _calls(low.functions["Model_decode"])]
    assert once[0] == "Layer_decode_once"
    kinds = [op.kind for op in walk(low.functions["Layer_decode"])]
    assert "gather" not in kinds and "le" not in kinds and "iota" not in kinds
    assert "gather" in [op.kind for op in walk(low.functions["Layer_decode_once"])]
    assert low.prepared == ("tables_prepared", "Layer_decode_prepared")
    prepared = [op for f in low.functions.values() for op in walk(f) if op.attrs.get("prepared")]
    assert {op.attrs["callee"] for op in prepared} == set(low.prepared)
    for name in low.prepared:
        assert not low.functions[name].params and not low.functions[name].generics
    trained = lowered(toy, weights, trainable=True)
    assert trained.prepared == ("tables_prepared",)


def test_symbolic_tables_are_made_once_a_call(toy: Program, weights: Weights) -> None:
    low = lowered(toy, weights)
    calls = [op.attrs["callee"] for op in _calls(low.functions["Model_forward"])]
    assert calls.count("Layer_forward_once") == 1
    assert "exp" not in [op.kind for op in walk(low.functions["Layer_forward"])]


def test_large_tables_are_not_kept(toy: Program) -> None:
    binding = bind(toy, "Model", {"H": 1024, "Layers": 2, "MaxSeq": 10**12})
    low = lower(binding, ["decode"])
    assert "tables_prepared" not in low.prepared


def test_helpers_are_inlined_and_undone(toy: Program, weights: Weights) -> None:
    """Two transpositions cancel once their helper is gone."""
    low = lowered(toy, weights)
    assert not any("swap" in name for name in low.functions)
    assert "permute" not in [op.kind for op in walk(low.functions["Layer_forward"])]


def test_entry_sizes_can_be_given(toy: Program, weights: Weights) -> None:
    from linnet.dims import Dim

    binding = bind(toy, "Model", SIZES)
    low = lower(binding, ["forward"], present=frozenset(weights), sizes={"S": Dim.of(2)})
    entry = low.functions["Model_forward"]
    assert not entry.generics and str(entry.params[0].type) == "Tensor[2, 4; f32]"


def test_unknown_entry(toy: Program) -> None:
    with pytest.raises(BindError, match="no entry `train`; the entries: decode, forward"):
        lower(bind(toy, "Model", SIZES), ["train"])


def test_origins_name_the_source(toy: Program, weights: Weights) -> None:
    low = lowered(toy, weights)
    assert low.origins["Layer_decode_once"] == "m::Layer.decode"
    assert set(low.origins) == set(low.functions)
    for op in (op for f in low.functions.values() for op in _calls(f)):
        assert op.attrs["callee"] in low.functions


def test_callees_come_first(toy: Program, weights: Weights) -> None:
    low = lowered(toy, weights)
    seen: set[str] = set()
    for name, function in low.functions.items():
        assert name == function.name
        assert {op.attrs["callee"] for op in _calls(function)} <= seen
        seen.add(name)
