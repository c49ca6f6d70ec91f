"""Each program of these tests runs as its body and with kernels, and has to give the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .programs import Runner

torch.set_num_threads(1)


@pytest.fixture(params=["exact", "fast"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    """Runs one entry of a small program."""
    return Runner(tmp_path, str(request.param))
