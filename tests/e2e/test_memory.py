"""A model of a gibibyte in bf16: loading it and one step add little more than its weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
module big
use std.nn.cache::{write_at}
use std.nn.embedding::{Embedding}
use std.nn.linear::{Linear}
use std.nn.mlp::{SwiGlu}
use std.nn.norm::{RmsNorm}

pub block Layer<H: Dim, Inner: Dim, MaxSeq: Dim>
where H > 0 {
    sub norm: RmsNorm<H, bf16>
    sub q: Linear<H, H, bf16>
    sub k: Linear<H, H, bf16>
    sub v: Linear<H, H, bf16>
    sub mlp: SwiGlu<H, Inner, bf16>
    state cache: Tensor[1, 1, MaxSeq, H; bf16]
    pub fn step(x: Tensor[1, 1, H; bf16], pos: i32) -> Tensor[1, 1, H; bf16] {
        let y = norm.forward(x)
        cache = write_at(cache, reshape(k.forward(y) + v.forward(y), [1, 1, 1, H]), pos)
        let seen = cache[:, :, 0, :]
        return x + mlp.forward(q.forward(y) + seen)
    }
}

pub block Model<V: Dim, H: Dim, Inner: Dim, Layers: Dim, MaxSeq: Dim>
where H > 0, MaxSeq > 0 {
    sub embedding: Embedding<V, H, bf16>
    sub layers: [Layer<H, Inner, MaxSeq>; Layers]
    sub head: Linear<H, V, bf16>
    pub entry step(token: Tensor[1, 1; i32], pos: i32) -> Tensor[1, 1, V; bf16] {
        var x = embedding.forward(token)
        static for layer in layers {
            x = layer.step(x, pos)
        }
        return head.forward(x)
    }
}
""".replace("MaxSeq: Dim>\nwhere H > 0 {", "MaxSeq: Dim>\nwhere H > 0, MaxSeq > 0 {")

V, H, INNER, LAYERS = 32768, 2048, 6144, 9

STEP = """
import sys
import torch
import linnet.torch
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
torch.set_num_threads(1)
torch.ones(8, 8).bfloat16() @ torch.ones(8, 8).bfloat16()
v, h, inner, layers, size = map(int, sys.argv[3:8])
before = peak()
model = linnet.torch.load(
    sys.argv[1], weights=sys.argv[2], numerics=sys.argv[8],
    generics={"V": v, "H": h, "Inner": inner, "Layers": layers, "MaxSeq": 128},
)
loaded = peak()
token = torch.zeros(1, 1, dtype=torch.int32)
result = model.run_entry("step", [token, 0])
assert result.shape == (1, 1, v) and bool(torch.isfinite(result).all())
print((loaded - before) / size, (peak() - before) / size)
"""


def tensors() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (V, H), "head.weight": (V, H)}
    for n in range(LAYERS):
        shapes[f"layers.{n}.norm.weight"] = (H,)
        for name in "qkv":
            shapes[f"layers.{n}.{name}.weight"] = (H, H)
        for name, shape in (("gate", (INNER, H)), ("up", (INNER, H)), ("down", (H, INNER))):
            shapes[f"layers.{n}.mlp.{name}.weight"] = shape
    return shapes


def write(path: Path) -> int:
    """Small random weights; the number of their bytes."""
    header, at = {}, 0
    for name, shape in tensors().items():
        size = int(np.prod(shape)) * 2
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in tensors().values():
            some = rng.normal(size=min(int(np.prod(shape)), 65536)).astype(np.float32) / 32
            bits = (some.view(np.uint32) >> 16).astype(np.uint16)
            file.write(np.resize(bits, int(np.prod(shape))).tobytes())
    return at


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_loading_and_one_step(tmp_path: Path) -> None:
    (tmp_path / "big.linnet").write_text(PROGRAM)
    size = write(tmp_path / "big.safetensors")
    assert size >= 1 << 30
    for numerics in ("fast", "exact"):
        numbers = map(str, (V, H, INNER, LAYERS, size))
        done = subprocess.run(
            [sys.executable, "-c", STEP, str(tmp_path / "big.linnet"),
             str(tmp_path / "big.safetensors"), *numbers, numerics],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        loaded, stepped = map(float, done.stdout.split())
        print(f"{numerics}: {loaded:.3f} of the weights after loading, {stepped:.3f} after a step")
        assert 1.0 < stepped < 1.3, (numerics, loaded, stepped)
