"""Every op of the library: bodies exactly, kernels closely, against the NumPy oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.native.natives.table import KERNELS
from linnet.native.runtime.load import load

from .support import QUICK, Run, checked, difference, oracle, run_all

pytest.importorskip("torch")  # the cases stand beside PyTorch's natives
from ..torch.test_natives import CASES, Case, floats, text_of, typed

ROPE = [
    Case("rope", "use std.nn.rope::{rope}",
         "<B: Dim, S: Dim>(x: Tensor[B, 3, S, 8; T], c: Tensor[S, 8; T], s: Tensor[S, 8; T]) "
         "-> Tensor[B, 3, S, 8; T] { return rope(x, c, s) }",
         [{"B": 2, "S": 5}, {"B": 1, "S": 1}, {"B": 0, "S": 2}],
         lambda rng, s: [floats(rng, s["B"], 3, s["S"], 8), floats(rng, s["S"], 8),
                         floats(rng, s["S"], 8)]),
    Case("rope_rows", "use std.nn.rope::{rope_rows}",
         "<B: Dim>(x: Tensor[B, 3, 1, 8; T], c: Tensor[B, 1, 8; T], s: Tensor[B, 1, 8; T]) "
         "-> Tensor[B, 3, 1, 8; T] { return rope_rows(x, c, s) }",
         [{"B": 3}, {"B": 1}, {"B": 0}],
         lambda rng, s: [floats(rng, s["B"], 3, 1, 8), floats(rng, s["B"], 1, 8),
                         floats(rng, s["B"], 1, 8)]),
]  # fmt: skip
ALL = [*CASES, *ROPE]
TOLERANCE = {"f32": 2e-4, "bf16": 2e-2, "f16": 4e-3}


@pytest.mark.parametrize(
    ("dtype", "numerics"),
    [
        ("f32", "fast"), ("bf16", "fast"),
        *(pytest.param(d, n, marks=pytest.mark.slow)
          for d, n in (("f16", "fast"), ("f32", "exact"), ("bf16", "exact"))),
    ],
)  # fmt: skip
def test_ops_agree_with_the_oracle(dtype: str, numerics: str, tmp_path: Path) -> None:
    runs, wanted = [], []
    for number, case in enumerate(ALL):
        if dtype not in case.dtypes:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        program = checked(folder, text_of(case, dtype))
        model = load(program, numerics=numerics)
        model._bounds.known["run"] = ()  # let what lies outside reach the code
        rng = np.random.default_rng(len(case.entry))
        for sizes in case.sizes:
            inputs: list[Any] = typed(case, case.inputs(rng, sizes), dtype)
            runs.append(Run(model, "run", inputs, {}))
            wanted.append((case, sizes, oracle(program, "run", inputs)))
    for run, (case, sizes, want), got in zip(runs, wanted, run_all(runs, QUICK), strict=True):
        label = (case.name or case.kernel, sizes)
        assert not isinstance(got, Exception), (label, got)
        gap = difference(got, want)
        assert gap < TOLERANCE[dtype], (label, gap, run.generated().text)


def test_every_kernel_is_reached(tmp_path: Path) -> None:
    texts = ""
    for number, case in enumerate(ALL):
        folder = tmp_path / str(number)
        folder.mkdir()
        program = checked(folder, text_of(case, "f32"))
        model = load(program)
        sizes = case.sizes[0]
        inputs = typed(case, case.inputs(np.random.default_rng(0), sizes), "f32")
        texts += Run(model, "run", inputs, {}).generated().text
    for word in ("linnet::matmul", "linnet::rms_norm", "linnet::layer_norm", "linnet::softmax",
                 "linnet::argmax", "linnet::rope", "linnet::attention_prefix",
                 "linnet::attention_masked", "linnet::paged_attention", "write_cache",
                 "write_tokens", "fast_silu", "fast_sigmoid", "fast_gelu"):  # fmt: skip
        assert word in texts, word
    assert KERNELS
