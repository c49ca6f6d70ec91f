"""Every operation of the table has code, and every stdlib op means on JAX what its body says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet.jax
from linnet.ir.table import OPS
from linnet.jax.emit.function import HANDLED

from .support import checked, difference, oracle, to_numpy

pytest.importorskip("torch")  # the cases stand beside PyTorch's natives
from ..torch.test_natives import CASES, Case, text_of, typed

TOLERANCE = {"f32": 2e-4, "bf16": 2e-2, "f16": 4e-3}


def test_every_operation_has_code() -> None:
    assert set(OPS) - HANDLED == set()


@dataclass
class Runs:
    """The models of one case."""

    exact: Any
    others: list[Any]


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        pytest.param(
            c, d, id=f"{c.name or c.kernel}-{d}", marks=[pytest.mark.slow] * (d == "f16" or k % 6)
        )
        for k, c in enumerate(CASES)
        for d in c.dtypes
    ],
)
def test_op_agrees_with_the_oracle(case: Case, dtype: str, tmp_path: Path) -> None:
    program = checked(tmp_path, text_of(case, dtype))
    models = {
        n: linnet.jax.load_source_model(program, numerics=n)
        for n in ("exact", "equivalent", "fast")
    }
    rng = np.random.default_rng(len(case.entry))
    for sizes in case.sizes:
        inputs = typed(case, case.inputs(rng, sizes), dtype)
        want = oracle(program, "run", inputs)
        for numerics, model in models.items():
            model._program._bounds.known["run"] = ()  # let what lies outside reach the kernels
            got = to_numpy(model.run_entry("run", inputs))
            gap = difference(got, want)
            assert gap < TOLERANCE[dtype], (numerics, sizes, gap, model.generated_source("run"))
