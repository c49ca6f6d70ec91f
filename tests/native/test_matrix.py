"""Every row of the operation table, in every dtype it takes, against the NumPy oracle."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.ir import OPS
from linnet.ir.evaluate import Evaluator
from linnet.native.emit.function import HANDLED
from linnet.native.runtime.load import load

from .support import QUICK, Run, as_program, run_all

pytest.importorskip("linnet.onnx")  # the cases stand beside the ONNX backend's tests
from ..onnx.test_matrix import ROWS, SIZES, allowed, entry, flat, inputs

CHUNKS = [list(ROWS)[k::4] for k in range(4)]


def test_every_operation_has_code() -> None:
    assert set(OPS) - HANDLED == set()


@pytest.mark.parametrize("kinds", CHUNKS, ids=range(len(CHUNKS)))
def test_rows(kinds: list[str]) -> None:
    compare(kinds, QUICK)


def compare(kinds: list[str], flags: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    runs, wanted = [], []
    for kind in kinds:
        f = entry(kind)
        model = load(as_program(f), numerics="exact")
        for sizes in SIZES:
            if kind == "gather" and 0 in sizes.values():
                continue  # an index into nothing has no meaning
            given = inputs(kind, f, sizes, rng)
            runs.append(Run(model, "run", given, {}))
            wanted.append((kind, sizes, Evaluator({f.name: f}).run(f.name, given, sizes)))
    for run, (kind, sizes, want), got in zip(runs, wanted, run_all(runs, flags), strict=True):
        assert not isinstance(got, Exception), (kind, sizes, got)
        for k, (a, b) in enumerate(zip(flat(got), flat(want), strict=True)):
            assert allowed(kind, a, b), (kind, sizes, k, np.asarray(b).dtype, a, b,
                                         run.generated().text)  # fmt: skip
