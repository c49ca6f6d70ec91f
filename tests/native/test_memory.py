"""What a model takes of memory: its packed weights alone, and no more of a cache than is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
module m
use std.nn.attention::{grouped_attention}
use std.nn.cache::{write_span}
use std.nn.linear::{Linear}
pub block M<N: Dim, MaxSeq: Dim> {
    sub linear: Linear<N, N, f32>
    state keys: Tensor[1, 2, MaxSeq, 64; f32]
    pub entry step(
        x: Tensor[1, N; f32], q: Tensor[1, 2, 1, 64; f32], pos: i32,
    ) -> (Tensor[1, N; f32], Tensor[1, 2, 1, 64; f32]) {
        keys = write_span(keys, q, pos)
        let places = iota<i32>(MaxSeq)
        let at = pos + iota<i32>(1)
        let seen[i, s] = places[s] <= at[i]
        return (linear.forward(x), grouped_attention(q, keys, keys, 0.125, some(seen)))
    }
}
"""
SCRIPT = """
import sys
import numpy as np
from linnet.native import load

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024

def run(n, weights, **options):
    model = load(sys.argv[1], generics={"N": n, "MaxSeq": 40960}, weights=weights, **options)
    x, q = np.ones((1, n), np.float32), np.ones((1, 2, 1, 64), np.float32)
    for pos in range(3):
        model.run_entry("step", [x, q, pos])
    return model

# What reading and compiling a program takes is not the model's.
run(64, {"linear.weight": np.ones((64, 64), np.float32)}, weights_format="int8")
start = resident()
model = run(4096, sys.argv[2], weights_format="int8")
held = resident() - start
weight = model.parameters["linear.weight"]
print(held, weight.shape, weight.flags.writeable)
del weight
print(resident() - start)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_memory_is_the_packed_weights_and_the_cache_as_far_as_it_is_filled(
    tmp_path: Path,
) -> None:
    save = pytest.importorskip("safetensors.numpy").save_file
    (tmp_path / "m.linnet").write_text(PROGRAM)
    rng = np.random.default_rng(0)
    weights = {"linear.weight": rng.normal(size=(4096, 4096)).astype(np.float32)}  # 64 MiB
    save(weights, str(tmp_path / "w.safetensors"))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "m.linnet"),
         str(tmp_path / "w.safetensors")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, again = done.stdout.splitlines()
    held, shape = first.split(maxsplit=1)
    # 16 MiB at 8 bits; the cache of 40,960 positions is 20 MiB and 3 positions are used.
    assert int(held) < 26 << 20, done.stdout
    assert shape == "(4096, 4096) False"
    assert int(again) < 30 << 20, done.stdout
