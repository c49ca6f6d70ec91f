"""`compile="inductor"`: a layer compiles once, and lengths it has not seen need no compiling."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

import linnet.torch
from linnet.torch import Model

from .support import checked
from .toy import GENERICS, TOY

pytestmark = pytest.mark.slow


def load(folder: Path, layers: int, compile: bool | str) -> Model:
    generics = {**GENERICS, "Layers": layers}
    model = linnet.torch.load(checked(folder, TOY), generics=generics, compile=compile)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


def graphs() -> int:
    return int(counters["stats"]["unique_graphs"])


def test_depth_and_a_third_length_compile_nothing_more(tmp_path: Path) -> None:
    torch._dynamo.reset()
    counters.clear()
    plain = load(tmp_path, 5, False)
    model = load(tmp_path, 5, "inductor")
    made = []
    for length in (5, 9, 17, 33):
        tokens = torch.arange(length, dtype=torch.int32)[None] % 11
        assert torch.allclose(model(tokens), plain(tokens), atol=1e-4)
        made.append(graphs())
    assert made[0] >= 1 and made[-1] == made[1]
    for pos in range(6):
        tokens = torch.tensor([[1], [2]], dtype=torch.int32)
        got = model.run_entry("step", [tokens, pos])
        assert torch.allclose(got, plain.run_entry("step", [tokens, pos]), atol=1e-4)
        made.append(graphs())
    assert made[-1] == made[6]
    counters.clear()
    torch._dynamo.reset()
    shallow = load(tmp_path, 2, "inductor")
    shallow(torch.zeros(1, 5, dtype=torch.int32))
    assert graphs() == made[0]
