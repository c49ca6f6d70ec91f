"""The native kernels' speed: bandwidth a weight format reaches beside a plain read of memory.

    python bench/native_kernels.py [--threads N] [--isa NAME] [--shapes smol|qwen] [--quick]

Each line times a sweep over all matrices of a model, alternating with a read of as many bytes, and
takes the best of several rounds of both: what counts is the ratio on one line.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from linnet.native import kernels

KINDS = {"f32": 0, "bf16": 1, "int8": 2, "q8": 3, "q4": 4}
# (layers, matrices of a layer as outputs and inputs, head)
SHAPES = {
    "smol": (30, ((960, 576), (576, 576), (3072, 576), (576, 1536)), (49152, 576)),
    "qwen": (8, ((4096, 1024), (1024, 2048), (6144, 1024), (1024, 3072)), (151936 // 4, 1024)),
}
# Weights, x (0: f32, 1: bf16), and whether x may be rounded to int8.
FORMATS = (
    ("f32", 0, False),
    ("bf16", 0, False),
    ("bf16", 1, False),
    ("int8", 0, False),
    ("int8", 0, True),
    ("q8", 0, True),
    ("q4", 0, False),
    ("q4", 0, True),
    ("q4", 1, True),
)
ISAS = ("portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx")


def library(folder: Path) -> Path:
    """The kernels with their C names, compiled into `folder`."""
    compiler = os.environ.get("CXX", "g++")

    def compile_one(source: Path) -> str:
        out = folder / f"{source.stem}.o"
        flags = (*kernels.FLAGS, f"-I{kernels.INCLUDE}", "-c", str(source), "-o", str(out))
        subprocess.run([compiler, *flags], check=True)
        return str(out)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, (*kernels.SOURCES, kernels.C_NAMES)))
    made = folder / "libkernels.so"
    subprocess.run([compiler, *kernels.LINK_FLAGS, *objects, "-o", str(made)], check=True)
    return made


def load(path: Path) -> Any:
    lib = ctypes.CDLL(str(path.absolute()))
    lib.linnet_k_pack.restype = lib.linnet_k_alloc.restype = ctypes.c_void_p
    lib.linnet_k_bytes.restype = ctypes.c_int64
    return lib


def i64(x: int) -> ctypes.c_int64:
    return ctypes.c_int64(x)


CLOCK = time.perf_counter


def seconds(work: Callable[[], None]) -> float:
    start = CLOCK()
    work()
    return CLOCK() - start


class Model:
    """All matrices of one format, and buffers for their inputs and outputs."""

    def __init__(self, lib: Any, kind: str, shapes: str, rounded: bool) -> None:
        self.lib = lib
        layers, matrices, head = SHAPES[shapes]
        rng = np.random.default_rng(0)
        self.matrices: list[tuple[Any, int, int]] = []
        pool = {s: rng.standard_normal(s, dtype=np.float32) for s in {*matrices, head}}
        for n, k in (*(m for _ in range(layers) for m in matrices), head):
            data = ctypes.c_void_p(pool[n, k].ctypes.data)
            code = KINDS[kind]
            handle = ctypes.c_void_p(
                lib.linnet_k_pack(code, 0, data, i64(n), i64(k), i64(32), i64(0))
            )
            lib.linnet_k_rounded(handle, int(rounded))
            self.matrices.append((handle, n, k))
        self.bytes = sum(lib.linnet_k_bytes(h) for h, _, _ in self.matrices)
        self.weights = sum(n * k for _, n, k in self.matrices)

    def sweep(self, form: int, rows: int) -> Callable[[], None]:
        widest = max(max(n, k) for _, n, k in self.matrices)
        x = np.full((rows, widest), 0x3DCD if form else 0, np.uint16 if form else np.float32)
        if not form:
            x[:] = np.random.default_rng(1).standard_normal(x.shape)
        y = np.zeros((rows, widest), np.float32)
        px, py, null = (
            ctypes.c_void_p(x.ctypes.data),
            ctypes.c_void_p(y.ctypes.data),
            ctypes.c_void_p(),
        )
        calls = [(h, i64(n), i64(k)) for h, n, k in self.matrices]
        if rows > 1:
            calls = calls[:-1]  # a prompt's head looks at its last row alone

        def run() -> None:
            for h, n, k in calls:
                self.lib.linnet_k_linear(h, form, px, k, i64(rows), py, n, null)
            _ = x, y

        return run

    def free(self) -> None:
        for h, _, _ in self.matrices:
            self.lib.linnet_k_free(h)


def alternate(works: list[Callable[[], None]], rounds: int) -> list[float]:
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for i, work in enumerate(works):
            best[i] = min(best[i], seconds(work))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--isa", choices=ISAS)
    parser.add_argument("--shapes", choices=list(SHAPES), default="smol")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=[512], help="also prompts of so many rows"
    )
    parser.add_argument("--library", type=Path, help="one compiled before, instead of compiling")
    parser.add_argument("--kinds", help="only these, as kind:x separated by commas (q4:int8)")
    parser.add_argument(
        "--cpu", action="store_true", help="processor time of one thread, for a busy machine"
    )
    args = parser.parse_args()
    if args.cpu:
        global CLOCK
        CLOCK, args.threads = time.process_time, 1
    rounds = 4 if args.quick else 12
    with tempfile.TemporaryDirectory() as folder:
        lib = load(args.library or library(Path(folder)))
    if args.isa and not lib.linnet_k_set_isa(ISAS.index(args.isa)):
        parser.error(f"this machine has no {args.isa}")
    lib.linnet_k_set_threads(args.threads)
    print(f"{args.shapes}, {lib.linnet_k_threads()} threads, {ISAS[lib.linnet_k_isa()]}")
    print(
        f"{'weights':8} {'x':8} {'MB':>6} {'ms':>8} {'GB/s':>6} {'read':>6} {'of it':>6}   prompts"
    )
    for kind, form, rounded in FORMATS:
        x = "int8" if rounded else "bf16" if form else "f32"
        if args.kinds and f"{kind}:{x}" not in args.kinds.split(","):
            continue
        model = Model(lib, kind, args.shapes, rounded)
        memory = ctypes.c_void_p(lib.linnet_k_alloc(i64(model.bytes)))
        ctypes.memset(memory, 1, model.bytes)
        read = lambda m=memory, n=model.bytes: lib.linnet_k_read(m, i64(n))  # noqa: E731
        own, plain = alternate([model.sweep(form, 1), read], rounds)
        speed, most = model.bytes / own / 1e9, model.bytes / plain / 1e9
        line = f"{kind:8} {x:8} {model.bytes / 1e6:6.0f} {own * 1e3:8.2f} {speed:6.1f} "
        line += f"{most:6.1f} {plain / own:6.0%}"
        for rows in args.rows:
            (many,) = alternate([model.sweep(form, rows)], 1 if args.quick else 3)
            n, k = SHAPES[args.shapes][2]
            flops = 2e-9 * rows * (model.weights - n * k) / many
            line += f"   {rows}: {many * 1e3:.0f} ms, {flops:.0f} Gflop/s"
        print(line, flush=True)
        lib.linnet_k_release(memory, i64(model.bytes))
        model.free()


if __name__ == "__main__":
    main()
