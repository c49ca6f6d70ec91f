"""Experts' weights packed in every format, and the delta rule's memory written straight back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from linnet.native import RunError, load

from .support import checked, difference

MIXTURE = """
module m
use std.nn.moe::{combine_experts, linear_experts, linear_experts_shared}
pub block Mixture<E: Dim, O: Dim, I: Dim> {
    param up: Tensor[E, O, I; T]
    param down: Tensor[E, I, O; T]
    pub entry run<R: Dim, K: Dim>(
        x: Tensor[R, I; T], experts: Tensor[R, K; i64], weights: Tensor[R, K; T],
    ) -> Tensor[R, I; T] {
        return combine_experts(linear_experts_shared(x, up, experts), down, experts, weights)
    }
    pub entry each<R: Dim, K: Dim>(
        x: Tensor[R, K, I; T], experts: Tensor[R, K; i64],
    ) -> Tensor[R, K, O; T] {
        return linear_experts(x, up, experts)
    }
}
"""
SIZES: dict[str, int | str] = {"E": 6, "O": 40, "I": 64}
DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}


def weights(dtype: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    up, down = rng.normal(size=(6, 40, 64)) / 8, rng.normal(size=(6, 64, 40)) / 8
    up[5] = down[5] = np.nan  # nobody chooses it
    return {"up": up.astype(DTYPES[dtype]), "down": down.astype(DTYPES[dtype])}


def expected(held: Any, x: Any, experts: Any, by: Any, kind: Any) -> Any:
    up, down = (held[name].astype(np.float32) for name in ("up", "down"))
    wide = np.einsum("ri,rkoi->rko", x.astype(np.float32), up[experts]).astype(kind)
    out = np.einsum("rko,rkio->rki", wide.astype(np.float32), down[experts])
    return (by.astype(np.float32)[..., None] * out).sum(1).astype(kind)


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("f32", None), ("bf16", None), ("f32", "int8"), ("f32", "int8_group"), ("f32", "int4"),
     ("bf16", "int8")],
)  # fmt: skip
def test_packed_experts(dtype: str, wanted: str | None, tmp_path: Path) -> None:
    program = checked(tmp_path, MIXTURE.replace("; T]", f"; {dtype}]"))
    pattern = None if wanted is None else {"*": wanted}
    model = load(program, generics=SIZES, weights=weights(dtype), weights_format=pattern,
                 numerics="equivalent")  # fmt: skip
    rng, kind = np.random.default_rng(1), DTYPES[dtype]
    held = model.parameters
    if wanted is not None:
        assert not np.array_equal(held["up"][:5], weights(dtype)["up"][:5])
    for rows in (0, 1, 3, 50):
        x = rng.normal(size=(rows, 64)).astype(kind)
        experts = np.sort(rng.integers(0, 5, (rows, 2)))
        by = rng.uniform(size=(rows, 2)).astype(kind)
        got = model.run_entry("run", [x, experts, by])
        want = expected(held, x, experts, by, kind)
        assert difference(got, want) < (2e-4 if dtype == "f32" else 2e-2), rows
        assert np.isfinite(got.astype(np.float32)).all()
    assert not any(item.array is not None for item in model._weights.items.values())


def test_each_with_its_own_input_and_a_bad_expert(tmp_path: Path) -> None:
    program = checked(tmp_path, MIXTURE.replace("; T]", "; f32]"))
    model = load(program, generics=SIZES, weights=weights("f32"))
    rng = np.random.default_rng(2)
    x, experts = rng.normal(size=(7, 3, 64)).astype(np.float32), rng.integers(0, 5, (7, 3))
    want = np.einsum("rki,rkoi->rko", x, weights("f32")["up"][experts])
    assert difference(model.run_entry("each", [x, experts]), want) < 2e-4
    model._bounds.check = lambda *_: None  # type: ignore[method-assign]
    for bad in (6, -1):
        experts[4, 1] = bad
        with pytest.raises(RunError, match=f"index {bad} is outside an axis of extent 6"):
            model.run_entry("each", [x, experts])


RULE = """
module m
use std.nn.cache::{write_slots}
use std.nn.recurrent::{gated_delta_step}
pub block Rule {
    state memory: Tensor[2, 4, 8, 5; f32]
    pub entry step(
        q: Tensor[2, 2, 8; f32], v: Tensor[2, 4, 5; f32], gate: Tensor[2, 4; f32],
    ) -> Tensor[2, 4, 5; f32] {
        let stepped = gated_delta_step(q, q, v, gate, gate, memory, 1.0)
        let after = permute(stepped[:, 1:9, :, :], [0, 2, 1, 3])
        memory = write_slots(memory, after, iota<i32>(2), 0)
        return reshape(stepped[:, 0:1, :, :], [2, 4, 5])
    }
}
"""


def test_a_memory_goes_from_the_kernel_to_the_state(tmp_path: Path) -> None:
    """The op gives outputs and memories turned and joined; the code does neither."""
    model = load(checked(tmp_path, RULE))
    rng = np.random.default_rng(3)
    q = rng.normal(size=(2, 2, 8)).astype(np.float32) / 3
    v = rng.normal(size=(2, 4, 5)).astype(np.float32)
    gate = np.full((2, 4), -0.5, np.float32)
    memory = np.zeros((2, 4, 8, 5), np.float32)
    keys = np.repeat(q, 2, axis=1)
    for _ in range(3):
        memory *= np.exp(-0.5)
        change = -0.5 * (v - np.einsum("bhc,bhcd->bhd", keys, memory))
        memory += keys[..., None] * change[:, :, None]
        want = np.einsum("bhc,bhcd->bhd", keys, memory)
        assert difference(model.run_entry("step", [q, v, gate]), want) < 1e-5
        assert difference(model.state("memory"), memory) < 1e-5
    body = model.generated_source("step").partition("linnet::delta_rule(")[2]
    assert re.search(r"write_cache\(block\.\w+, memory\w*, ", body), body
    assert len(re.findall(r"\bfor \(", body.partition("struct Held")[0])) <= 1, body
