"""What PyTorch's kernels promise beyond their values, which tests/matrix compares: that each is the
one chosen where it should be, and that gradients through it are the body's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import linnet.torch
from linnet.ir import Function
from linnet.ir.walk import walk
from linnet.passes import bind, lower
from linnet.torch.natives.table import selector

from ..matrix.cases import Case, text_of, together
from ..matrix.kernels import CASES, FIXED
from .support import checked, difference, to_numpy, to_torch

SLOW = pytest.mark.slow
# The first case of each kernel.
FIRST = {case.kernel: case for case in reversed(CASES)}.values()
# Cases whose op has no kernel here.
BODIES = ("rope", "rope_rows")


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_each_case_reaches_its_kernel(dtype: str, tmp_path: Path) -> None:
    # With numbers for its sizes a mask may be seen to be of a simpler kind.
    cases = [c for c in CASES if dtype in c.dtypes and c.kernel not in BODIES and c not in FIXED]
    binding = bind(together(tmp_path, cases, dtype), None, {})
    for numerics in ("fast", "equivalent"):
        mine = [k for k, case in enumerate(cases) if case.numerics == numerics]
        if not mine:
            continue
        entries = [f"case_{k}" for k in mine]
        lowered = lower(binding, entries, select=selector(numerics, "cpu", False))
        for k, name in zip(mine, entries, strict=True):
            used = kernels(lowered.functions, lowered.entries[name])
            assert cases[k].kernel in used, (cases[k].name or cases[k].kernel, used)


def kernels(functions: Any, name: str) -> set[str]:
    """The kernels that a function and its callees run."""
    function: Function = functions[name]
    found: set[str] = set()
    for op in walk(function.body):
        if op.kind == "native":
            found.add(op.attrs["kernel"])
        elif op.kind == "call":
            found |= kernels(functions, op.attrs["callee"])
    return found


DIFFERENTIABLE = [
    c for c in CASES
    if c.kernel not in (*BODIES, "argmax", "top_k") and not c.kernel.startswith("write_")
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "numerics"),
    [pytest.param(c, n, id=f"{c.name or c.kernel}-{n}",
                  marks=() if c in FIRST and n == c.numerics else SLOW)
     for c in DIFFERENTIABLE for n in ("equivalent", "fast")],
)  # fmt: skip
def test_gradients_agree_with_the_body(case: Case, numerics: str, tmp_path: Path) -> None:
    program = checked(tmp_path, text_of(case, "f32"))
    rng = np.random.default_rng(len(case.entry))
    for sizes in case.sizes:
        inputs = list(map(to_torch, case.inputs(rng, sizes)))
        slopes: list[list[torch.Tensor]] = []
        for kind in ("exact", numerics):
            model = linnet.torch.load(program, numerics=kind, compile=False, trainable=True)
            model._linnet.bounds.known["run"] = ()
            given = [leaf(v) for v in inputs]
            out = model.run_entry("run", given)
            weights = torch.linspace(-1.0, 1.0, max(out.numel(), 1))[: out.numel()]
            if out.requires_grad:  # what has no elements may come from nothing
                (out * weights.reshape(out.shape)).sum().backward()
            slopes.append([grad_of(v) for v in given if is_float(v)])
        for got, want in zip(slopes[1], slopes[0], strict=True):
            assert difference(to_numpy(got), to_numpy(want)) < 1e-3, (case.kernel, sizes)


def is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def leaf(value: Any) -> Any:
    return value.clone().requires_grad_() if is_float(value) else value


def grad_of(value: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(value) if value.grad is None else value.grad
