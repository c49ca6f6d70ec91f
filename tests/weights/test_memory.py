"""Peak memory of loading: the weights once, and little besides."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

ROWS, COLUMNS, COUNT = 8192, 4096, 16  # 1 GiB of bf16

LOAD = """
import sys
import torch
from linnet.weights import ParamSpec, open_weights, plan_load
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
torch.ones(8) @ torch.ones(8)
rows, columns, count = map(int, sys.argv[3:])
before = peak()
with open_weights(sys.argv[1]) as weights:
    params = [ParamSpec(f"w{n}", (rows, columns), sys.argv[2]) for n in range(count)]
    plan = plan_load(params, weights, cast_dtype=True)
    tensors = [plan.read_torch(item) for item in plan.items]
assert [int(t[-1, -1]) for t in tensors] == list(range(count))
print((peak() - before) / (rows * columns * count * 2))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_loading_a_gibibyte(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "m.safetensors"
    size = ROWS * COLUMNS * 2
    header = {
        f"w{n}": {
            "dtype": "BF16",
            "shape": [ROWS, COLUMNS],
            "data_offsets": [n * size, n * size + size],
        }
        for n in range(COUNT)
    }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.writelines(
            np.full((ROWS, COLUMNS), n, ml_dtypes.bfloat16).tobytes() for n in range(COUNT)
        )
    numbers = map(str, (ROWS, COLUMNS, COUNT))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(path), dtype, *numbers],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.1
