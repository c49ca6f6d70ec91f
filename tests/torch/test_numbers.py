"""Numbers in 16-bit arithmetic are of the tensor's dtype, however the text comes by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import linnet.torch
from linnet.types import DType

from .support import checked, oracle

NUMPY: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}

BODIES = {
    "scaled": "x * 0.3 * 0.7",
    "shifted": "(x + 0.1) - 0.3",
    "above": "select(x > 0.1, x, 0.1) / 3.3",
    "larger": "max(x, 0.1) * x",
    "chosen": "select(z == 2.0, z, 0.1) * x",
    "branched": "branch(z) * x",
    "stored": "filled_in(x) * 0.9",
}
TEXT = """
module program
fn branch<T: Float>(z: T) -> T {
    let q = if z == 2.0 { z } else { 0.1 }
    return q
}
fn filled_in<N: Dim, T: Float>(x: Tensor[N; T]) -> Tensor[N; T] {
    let y[i] = x[i] - 0.7
    return y
}
""" + "".join(
    f"pub entry {name}<T: Float>(x: Tensor[1000; T], z: T) -> Tensor[1000; T] {{ return {body} }}\n"
    for name, body in BODIES.items()
)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_exact_numbers_are_rounded(tmp_path: Path, dtype: str) -> None:
    program = checked(tmp_path, TEXT)
    numbers = np.random.default_rng(0).normal(size=1000).astype(NUMPY[dtype])
    kind = torch.float16 if dtype == "f16" else torch.bfloat16
    x = torch.from_numpy(numbers.astype(np.float32)).to(kind)
    model = linnet.torch.load(program, numerics="exact", compile=False)
    for name in BODIES:
        for z in (2.0, 0.05):
            want = oracle(program, name, [numbers, NUMPY[dtype](z)], T=DType(dtype))
            got = model.run_entry(name, [x, z], {"T": dtype})
            assert np.array_equal(got.float().numpy(), want.astype(np.float32)), (name, z)
