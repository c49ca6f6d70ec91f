"""Decoding at the sizes of larger models, beside a plain read of as many bytes.

    python bench/native_shapes.py [--threads N] [--rounds N] [--shapes NAME ...]

Random weights in the shapes of Qwen3-0.6B (8 of its layers) and Qwen3-8B (one layer, the head cut
to an eighth). Each line times decode steps at position 500, alternating with a read of memory as
large as the weights that a step reads; what counts is the ratio. The last lines time one model with
caches of 768 and of 40,960 positions.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from linnet.native import Model, load
from linnet.native.runtime.library import Library

SOURCE = Path(__file__).parent.parent / "models" / "decoder"
# H, Heads, KvHeads, HeadDim, Inner, Layers, Vocab
SHAPES = {
    "qwen3-0.6b": (1024, 16, 8, 128, 3072, 8, 151936),
    "qwen3-8b": (4096, 32, 8, 128, 12288, 1, 151936 // 8),
    "smollm2-135m": (576, 9, 3, 64, 1536, 30, 49152),
}
POSITION = 500


def generics(shape: str, max_seq: int) -> dict[str, int | str]:
    h, heads, kv_heads, head_dim, inner, layers, vocab = SHAPES[shape]
    return {
        "Vocab": vocab, "H": h, "Heads": heads, "KvHeads": kv_heads, "HeadDim": head_dim,
        "Inner": inner, "Layers": layers, "Batch": 1, "MaxSeq": max_seq, "T": "bf16",
    }  # fmt: skip


def weights(shape: str) -> dict[str, Any]:
    """Random parameters by path."""
    h, heads, kv_heads, head_dim, inner, layers, vocab = SHAPES[shape]
    rng = np.random.default_rng(0)
    pool = rng.standard_normal(1 << 20, dtype=np.float32).astype(ml_dtypes.bfloat16)

    def some(*sizes: int) -> Any:
        made = np.resize(pool, sizes)
        return (made.astype(np.float32) / np.sqrt(sizes[-1])).astype(ml_dtypes.bfloat16)

    found = {"embedding.weight": some(vocab, h), "lm_head.weight": some(vocab, h)}
    ones = np.ones(h, ml_dtypes.bfloat16)
    found["norm.weight"] = ones
    for k in range(layers):
        at = f"layers.{k}."
        found[f"{at}attention_norm.weight"] = found[f"{at}mlp_norm.weight"] = ones
        for name, sizes in (
            ("attention.q_proj", (heads * head_dim, h)),
            ("attention.k_proj", (kv_heads * head_dim, h)),
            ("attention.v_proj", (kv_heads * head_dim, h)),
            ("attention.o_proj", (h, heads * head_dim)),
            ("mlp.gate", (inner, h)), ("mlp.up", (inner, h)), ("mlp.down", (h, inner)),
        ):  # fmt: skip
            found[f"{at}{name}.weight"] = some(*sizes)
    return found


def read_bytes(found: dict[str, Any]) -> int:
    """What one step reads of the weights."""
    return sum(a.nbytes for path, a in found.items() if path != "embedding.weight")


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def stepper(model: Model) -> Callable[[], Any]:
    """One step at the position, after a prompt up to it."""
    prompt = np.arange(POSITION, dtype=np.int32)[None] % 1000
    model.run_entry("prefill", [prompt, 0])
    token = np.array([[1]], np.int32)
    return lambda: model.run_entry("decode", [token, POSITION])


class Memory:
    """Memory on huge pages that the library reads from front to back."""

    def __init__(self, size: int) -> None:
        self.c, self.size = Library.get().c, size
        self.c.linnet_k_alloc.restype = ctypes.c_void_p
        self.at = ctypes.c_void_p(self.c.linnet_k_alloc(ctypes.c_int64(size)))
        ctypes.memset(self.at, 1, size)

    def read(self) -> None:
        self.c.linnet_k_read(self.at, ctypes.c_int64(self.size))

    def free(self) -> None:
        self.c.linnet_k_release(self.at, ctypes.c_int64(self.size))


def best(works: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least time of each, all in turn."""
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        for k, work in enumerate(works):
            found[k] = min(found[k], seconds(work))
    return found


def against_memory(shape: str, rounds: int, threads: int | None) -> None:
    found = weights(shape)
    size = read_bytes(found)
    model = load(SOURCE, generics=generics(shape, 1024), weights=found, threads=threads)
    step = stepper(model)
    del found
    memory = Memory(size)
    own, plain = best([step, memory.read], rounds)
    memory.free()
    print(
        f"{shape:14} {size / 1e6:6.0f} MB  {own * 1e3:7.2f} ms  {size / own / 1e9:5.1f} GB/s  "
        f"read {size / plain / 1e9:5.1f} GB/s  {plain / own:4.0%}",
        flush=True,
    )


def long_caches(rounds: int, threads: int | None) -> None:
    found = weights("smollm2-135m")
    sizes = (768, 40960)
    steps = []
    for max_seq in sizes:
        given = generics("smollm2-135m", max_seq)
        steps.append(stepper(load(SOURCE, generics=given, weights=found, threads=threads)))
    times = best(steps, rounds)
    for max_seq, each in zip(sizes, times, strict=True):
        print(f"smollm2-135m, MaxSeq {max_seq:6}  {each * 1e3:7.2f} ms at {POSITION}")
    print(f"ratio {times[1] / times[0]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--shapes", nargs="*", choices=list(SHAPES), default=list(SHAPES)[:2])
    args = parser.parse_args()
    for shape in args.shapes:
        against_memory(shape, args.rounds, args.threads)
    long_caches(args.rounds, args.threads)


if __name__ == "__main__":
    main()
