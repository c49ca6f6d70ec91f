"""16-bit products are rounded whatever they pass through: an operator without a 16-bit kernel would
have the runtime widen its inputs, and drop the rounding before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet.onnx
from linnet.ir.semantics import NUMPY
from linnet.types import DType

from .support import checked, oracle

BODIES = {
    "added": "c * d + e",
    "selected": "select(c > cast<T>(0.0), c * d, e) + e",
    "larger": "max(c * d, e) - e",
    "absolute": "abs(c * d) * d + e",
    "moved": "reshape(permute(reshape(c * d, [2, 500]), [1, 0]), [1000]) + e",
    "spread": "reshape(broadcast_to(reshape(c[:10] * d[:10], [1, 10]), [100, 10]), [1000]) + e",
    "joined": "concat(c[:500] * d[:500], e[500:], axis=0) + e",
    "found": "pick(c * d, n) + e",
    "turned": "turn(c * d) + e",
}
TEXT = """
module program
fn pick<T: Float, N: Dim>(x: Tensor[N; T], n: Tensor[N; i32]) -> Tensor[N; T] {
    let y[i] = x[n[i]]
    return y
}
fn turn<T: Float, N: Dim>(x: Tensor[N; T]) -> Tensor[N; T] where N > 0 {
    return concat(x[1:], x[:1], axis=0)
}
""" + "".join(
    f"pub entry {name}<T: Float>(c: Tensor[1000; T], d: Tensor[1000; T], e: Tensor[1000; T],"
    f" n: Tensor[1000; i32]) -> Tensor[1000; T] {{ return {body} }}\n"
    for name, body in BODIES.items()
)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_products_are_rounded(tmp_path: Path, dtype: str) -> None:
    program = checked(tmp_path, TEXT)
    rng = np.random.default_rng(3)
    kind = NUMPY[DType(dtype)]
    inputs: list[Any] = [rng.normal(size=1000).astype(kind) for _ in range(3)]
    inputs.append(rng.integers(0, 1000, 1000).astype(np.int32))
    for numerics in ("exact", "fast"):
        model = linnet.onnx.load_model(program, numerics=numerics)
        for name in BODIES:
            want = oracle(program, name, inputs, T=DType(dtype))
            got = model.run_entry(name, inputs)
            assert (np.asarray(got) != want).sum() == 0, (name, numerics)
