"""Each program of these tests runs on every backend, as its body or with kernels, and has to give
the same. Quick runs take one numerics of each backend, `-m slow` the other; `jax_model`, which
compiles what `jax_source` generates as one program, is among the slow ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..matrix.backends import marks_of
from .programs import Runner

RUNS = [
    ("torch", "exact", False), ("torch", "fast", False),
    ("jax_source", "fast", False), ("jax_source", "exact", True),
    ("jax_model", "exact", True), ("jax_model", "fast", True),
    ("onnx_model", "fast", False), ("onnx_model", "exact", True),
    ("native", "fast", False), ("native", "exact", True),
]  # fmt: skip


@pytest.fixture(
    params=[pytest.param((b, n), marks=marks_of(b, slow), id=f"{b}-{n}") for b, n, slow in RUNS]
)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    """Runs one entry of a small program."""
    backend, numerics = request.param
    return Runner(tmp_path, numerics, backend)


@pytest.fixture(params=["exact", "fast"])
def run_torch(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    """As `run`, for what is PyTorch's own."""
    pytest.importorskip("torch")
    return Runner(tmp_path, str(request.param))
