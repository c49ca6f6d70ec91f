from __future__ import annotations

from dataclasses import replace

import pytest
from tests.patience import patient

from linnet.dims import Dim, Relation
from linnet.ir import Block, Member, Program, Sub
from linnet.passes import BindError, bind
from linnet.passes.bound import Instance
from linnet.types import DType

SIZES = {"H": 4, "Layers": 3, "MaxSeq": 6}


def test_paths_in_source_order(toy: Program) -> None:
    binding = bind(toy, "Model", SIZES)
    paths = [p.path for p in binding.params]
    assert paths[:5] == [
        "layers.0.rate",
        "layers.0.proj.weight",
        "layers.0.proj.bias",
        "layers.0.extra.weight",
        "layers.0.extra.bias",
    ]
    assert [s.path for s in binding.states] == [f"layers.{k}.cache" for k in range(3)]
    assert str(binding.states[0].type) == "Tensor[6, 4; f32]"
    assert binding.generics == {"H": 4, "Layers": 3, "MaxSeq": 6, "T": DType.F32}


def test_optional_is_known_from_the_child_block_down(toy: Program) -> None:
    optional = {p.path for p in bind(toy, "Model", SIZES).params if p.optional}
    assert "layers.1.extra.weight" in optional and "layers.1.proj.bias" in optional
    assert "layers.1.proj.weight" not in optional


def test_equal_children_are_one_instance(toy: Program) -> None:
    root = bind(toy, "Model", SIZES).root
    assert root is not None
    layers = root.children["layers"]
    assert isinstance(layers, tuple) and len({id(layer) for layer in layers}) == 1
    child = root.child(("layers", 2, "proj"))
    assert isinstance(child, Instance) and child.block == "m::Linear"


@pytest.mark.parametrize(
    ("generics", "problems"),
    [
        ({"H": 4}, ["`Layers: Dim` of `Model` is missing", "`MaxSeq: Dim` of `Model` is missing"]),
        ({**SIZES, "Heads": 2}, ["`Model` has no generic `Heads`; it has H, Layers, MaxSeq, T"]),
        ({**SIZES, "H": "wide"}, ["`H` of `Model` takes an integer, not 'wide'"]),
        ({**SIZES, "H": True}, ["`H` of `Model` takes an integer, not True"]),
        ({**SIZES, "H": -1}, ["`H` of `Model` is -1, which is no size"]),
        ({**SIZES, "T": "i32"}, ["takes a dtype out of f16, bf16, f32, f64, not 'i32'"]),
        ({**SIZES, "T": 3}, ["takes a dtype out of", "not 3"]),
        ({**SIZES, "H": 2000}, ["`Model` needs `H <= 1024`, which does not hold with H = 2000"]),
        ({**SIZES, "MaxSeq": 0}, ["`Model` needs `MaxSeq > 0`"]),
        ({"H": -1, "Depth": 1}, ["is no size", "no generic `Depth`", "`Layers: Dim`"]),
    ],
)
def test_problems_are_named_together(
    toy: Program, generics: dict[str, object], problems: list[str]
) -> None:
    with pytest.raises(BindError) as caught:
        bind(toy, "Model", generics)  # type: ignore[arg-type]
    for problem in problems:
        assert problem in str(caught.value)


def test_a_clause_of_a_child_block_is_named(toy: Program) -> None:
    layer = toy.blocks["m::Layer"]
    width = Dim.of(layer.generics[0].var)  # type: ignore[arg-type]
    strict = replace(layer, where=(Relation(width, ">", Dim.of(4)),))
    program = replace(toy, blocks={**toy.blocks, "m::Layer": strict})
    with pytest.raises(BindError, match="`Layer` needs `H > 4`"):
        bind(program, "Model", SIZES)


def test_unknown_block(toy: Program) -> None:
    with pytest.raises(BindError, match="no block `Modle`; the program's blocks: Layer, Linear"):
        bind(toy, "Modle", SIZES)


def test_module_without_a_block(toy: Program) -> None:
    assert bind(toy, None, {}).root is None
    with pytest.raises(BindError, match="no block is bound"):
        bind(toy, None, {"H": 2})


def test_hostile_sizes_end_at_once(toy: Program) -> None:
    with patient():
        with pytest.raises(BindError, match=r"`Model.layers` has 1,000,000,000,000 elements"):
            bind(toy, "Model", {**SIZES, "Layers": 10**12})
        many = bind(toy, "Model", {**SIZES, "H": 1024, "MaxSeq": 10**15})
    assert many.states[0].type.element_count == Dim.of(1024 * 10**15)


def test_nested_arrays_are_counted_before_they_are_made() -> None:
    blocks = {"m::B0": Block("m::B0", (), (), {"w": _weight()}, {}, {})}
    for k in range(1, 6):
        sub = Sub("parts", f"m::B{k - 1}", (), Dim.of(1000), False)
        blocks[f"m::B{k}"] = Block(f"m::B{k}", (), (), {}, {"parts": sub}, {})
    with pytest.raises(BindError, match="a model may have"):
        bind(Program("m", {}, blocks), "B5", {})


def test_a_block_in_itself_is_refused() -> None:
    sub = Sub("again", "m::B", (), None, False)
    blocks = {"m::B": Block("m::B", (), (), {}, {"again": sub}, {})}
    with pytest.raises(BindError, match="nested too deeply"):
        bind(Program("m", {}, blocks), "B", {})


def _weight() -> Member:
    from linnet.types import TensorType

    return Member("param", "w", TensorType((Dim.of(2),), DType.F32), False)


def test_many_layers_bind(toy: Program) -> None:
    with patient():
        bound = bind(toy, "Model", {**SIZES, "Layers": 10_000})
    assert len(bound.params) == 50_000
