"""The decoder of `models/`: every entry through every pass, at full size and at a toy one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from linnet.api import load_program
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.verify import verify
from linnet.ir.walk import walk
from linnet.passes import Lowered, bind, lower
from linnet.passes.module import Module

SOURCE = Path(__file__).parent.parent.parent / "models" / "decoder"
FULL: dict[str, int | str] = {
    "Vocab": 151936, "H": 4096, "Heads": 32, "KvHeads": 8, "HeadDim": 128, "Inner": 12288,
    "Layers": 36, "Batch": 1, "MaxSeq": 40960, "RopeTheta": 1000000, "InverseEps": 1000000,
}  # fmt: skip
TOY: dict[str, int | str] = {
    "Vocab": 11, "H": 8, "Heads": 4, "KvHeads": 2, "HeadDim": 4, "Inner": 6, "Layers": 3,
    "Batch": 2, "MaxSeq": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def decoder() -> Program:
    return load_program(SOURCE)


def present(program: Program, sizes: dict[str, int | str], *, norms: bool = True) -> frozenset[str]:
    paths = (p.path for p in bind(program, "Model", sizes).params)
    return frozenset(
        p for p in paths if not p.endswith("bias") and (norms or not p.endswith("_norm.weight")
                                                        or ("attention.q" not in p
                                                        and "attention.k" not in p))
    )  # fmt: skip


def lowered(program: Program, sizes: dict[str, int | str], **options: Any) -> Lowered:
    binding = bind(program, "Model", sizes)
    entries = list(program.entries(binding.block))
    there = options.pop("there", None) or present(program, sizes)
    return lower(binding, entries, present=there, **options)


def test_every_pass_leaves_verified_functions(decoder: Program) -> None:
    def observe(name: str, module: Module) -> None:
        for function in module.functions.values():
            verify(function, module.functions)

    low = lowered(decoder, FULL, observe=observe)
    assert len(low.entries) >= 17


def test_names_are_those_of_any_depth(decoder: Program) -> None:
    deep, flat = lowered(decoder, FULL), lowered(decoder, {**FULL, "Layers": 2})
    assert list(deep.functions) == list(flat.functions)
    for name, function in deep.functions.items():
        other = flat.functions[name]
        assert [op.kind for op in walk(function)] == [op.kind for op in walk(other)]


def test_one_table_row_and_mask_a_call(decoder: Program) -> None:
    """In `decode` nothing of angles and masks is left in the layers' functions."""
    binding = bind(decoder, "Model", FULL)
    low = lower(binding, ["decode"], present=present(decoder, FULL))
    by_kind = {name: {op.kind for op in walk(f)} for name, f in low.functions.items()}
    once = next(name for name in by_kind if name.endswith("_once") and "le" in by_kind[name])
    layers = [n for n in by_kind if "ayer" in n or ("ttention" in n and not n.endswith("_once"))]
    assert layers and once not in layers
    for name in layers:
        assert not by_kind[name] & {"le", "eq", "cos", "sin", "exp"} or "softmax" in name, name
    loops = [op for op in walk(low.functions["Model_extend"]) if op.kind == "for_subs"]
    calls = [op for op in low.functions["Model_extend"].body.ops if op.kind == "call"]
    assert len(loops) == 1 and any(op.attrs["callee"] == once for op in calls)
    assert any(name.endswith("_prepared") for name in low.prepared)


def _weights(program: Program, there: frozenset[str], dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = {**TOY, "T": dtype.__name__.replace("float32", "f32").replace("bfloat16", "bf16")}
    params = bind(program, "Model", sizes).params
    return {
        p.path: rng.normal(size=[d.evaluate({}) for d in p.type.dims]).astype(dtype)
        for p in params
        if p.path in there
    }


def _i32(*values: Any) -> Any:
    return np.array(values, np.int32)


CALLS: list[tuple[str, list[Any], dict[str, int]]] = [
    ("forward", [_i32([1, 2, 3], [4, 5, 6])], {}),
    ("prefill", [_i32([1, 2, 3], [4, 5, 6]), 0], {}),
    ("decode", [_i32([1], [2]), 3], {}),
    ("decode_rows", [_i32([1], [2]), _i32(4, 2)], {}),
    ("prefill_slots", [_i32([1, 2, 3], [4, 5, 6]), _i32(1, 0), _i32(3, 2)], {}),
    ("step_packed", [_i32(1, 2, 3, 4), _i32(0, 0, 1, 1), _i32(0, 1, 0, 1), _i32(0, 0, 1, 1),
                     _i32(1, 3), _i32([5], [6]), _i32(4, 5)], {}),
    ("generate", [_i32([1], [2]), 2], {"Steps": 3}),
    ("generate_until", [_i32([1], [2]), 2, 3], {"MaxNew": 3}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("norms", [True, False])
def test_toy_runs_agree_to_the_bit(decoder: Program, dtype: Any, norms: bool) -> None:
    there = present(decoder, TOY, norms=norms)
    weights = _weights(decoder, there, dtype)
    sizes = {**TOY, "T": "f32" if dtype is np.float32 else "bf16"}
    low = lowered(decoder, sizes, there=there)
    want = Evaluator(decoder, root="decoder::Model", generics=sizes, params=weights)
    have = Evaluator(
        low.functions, decoder.blocks, root="decoder::Model", generics=sizes, params=weights
    )
    for entry, inputs, generics in CALLS:
        a = want.run(f"decoder::Model.{entry}", inputs, generics)
        b = have.run(low.entries[entry], inputs, generics)
        assert _same(a, b), entry
    assert all(_same(want.state[path], have.state[path]) for path in want.state)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(map(_same, a, b))
    return bool(np.array_equal(a, b, equal_nan=True))
