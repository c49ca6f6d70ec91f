"""Files past what protobuf holds, and what loaded models take of memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from linnet.onnx import export_model
from linnet.passes import bind

from .support import checked
from .toy import GENERICS, TOY, weights

REPOSITORY = Path(__file__).parent.parent.parent
SEED = REPOSITORY.parent / "shared" / "seeds" / "qwen3-8b"
LARGE = {**GENERICS, "V": 280_000, "H": 1_024, "Layers": 1}  # embedding and head: 2.1 GiB


def available() -> int:
    """Bytes of memory that may be taken."""
    text = Path("/proc/meminfo").read_text(encoding="utf-8")
    (line,) = (s for s in text.splitlines() if s.startswith("MemAvailable"))
    return int(line.split()[1]) * 1024


RUN = """
import sys
import numpy as np
import onnxruntime as ort
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
(result,) = session.run(None, {"tokens": np.array([[279_999, 3]], np.int32)})
assert result.shape == (1, 2, 280_000)
assert result[0, 0, 279_999] != 0 and not result[0, 1].any()
"""


@pytest.mark.slow
def test_a_file_past_2_gib(tmp_path: Path) -> None:
    if available() < 10 << 30 or shutil.disk_usage(tmp_path).free < 6 << 30:
        pytest.skip("takes 10 GiB of memory and 6 GiB of disk")
    program = checked(tmp_path, TOY)
    small = weights(bind(program, "Model", {**LARGE, "V": 1}))
    given = {path: value for path, value in small.items() if value.shape[0] != 1}
    for path in ("embedding.weight", "head.weight"):
        given[path] = np.zeros((280_000, 1_024), np.float32)
        given[path][-1] = small[path][0]
    path = tmp_path / "large.onnx"
    export_model(program, path, entry="forward", root="Model", generics=LARGE, weights=given)
    del given
    assert path.stat().st_size < 1 << 20
    assert (tmp_path / "large.onnx.data").stat().st_size > 1 << 31
    onnx.checker.check_model(str(path))
    subprocess.run([sys.executable, "-c", RUN, str(path)], check=True, timeout=300)


def measured(*options: str) -> dict[str, Any]:
    command = [sys.executable, str(REPOSITORY / "bench" / "onnx_memory.py"), *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1_800)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_all_entries_of_a_small_model() -> None:
    """SmolLM2: half a gigabyte, so that the sessions themselves weigh most."""
    assert measured()["without_states"] <= 1.3


@pytest.mark.slow
@pytest.mark.skipif(not SEED.is_dir(), reason="the seed package is not here")
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_all_entries_of_a_larger_model(dtype: str) -> None:
    if available() < 8 << 30:
        pytest.skip("takes 8 GiB of memory")
    sizes = ["Layers=16"] if dtype == "f32" else ["Layers=36"]
    found = measured("--package", str(SEED), "--dtype", dtype, *(f"--set={s}" for s in sizes))
    assert found["hidden_packed" if "hidden_packed" in found else "loss_packed"] <= 1.3
