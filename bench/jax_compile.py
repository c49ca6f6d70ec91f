"""How long a `decode` of 2 and of 36 layers takes to compile on JAX, as source and as one program.

    python bench/jax_compile.py [--width 64] [--layers 2 36] [--max-seq 512] [--rounds 2]

A decoder in Qwen3's shape with random weights, each compilation in a process of its own. Prints the
seconds of the first call (the best of the rounds) and the milliseconds of the best later step. As
source, the last count of layers must take at most twice the first's: the exit code is 1 when it
does not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "models" / "decoder"
FORMS = {"source": "a layer called for each", "program": "one program, layers repeated"}
STEPS = 24


def measure(form: str, layers: int, width: int, max_seq: int) -> tuple[float, float]:
    """Seconds of the first call and of the best later one, in this process."""
    import numpy as np

    import linnet.jax

    load = linnet.jax.load_source_model if form == "source" else linnet.jax.load_model
    generics = {
        "Vocab": 512, "H": width, "Heads": 4, "KvHeads": 2, "HeadDim": 16, "Inner": 3 * width,
        "Layers": layers, "Batch": 1, "MaxSeq": max_seq, "T": "f32",
    }  # fmt: skip
    model = load(SOURCE, root="Model", generics=generics)
    token = np.array([[1]], np.int32)
    times = []
    for step in range(STEPS + 1):
        start = time.perf_counter()
        np.asarray(model.run_entry("decode", [token, step]))
        times.append(time.perf_counter() - start)
    return times[0], min(times[1:])


def apart(form: str, layers: int, args: argparse.Namespace) -> tuple[float, float]:
    """As `measure`, the best of the rounds, in fresh processes."""
    found = []
    for _ in range(args.rounds):
        command = [sys.executable, __file__, "--one", form, "--layers", str(layers)]
        command += ["--width", str(args.width), "--max-seq", str(args.max_seq)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        if done.returncode != 0:
            sys.exit(done.returncode)  # it has said why
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return min(first for first, _ in found), min(step for _, step in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 36])
    parser.add_argument("--max-seq", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--one", choices=list(FORMS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rounds < 1 or min(args.layers) < 1:
        parser.error("--rounds and --layers are 1 or more")
    if args.max_seq <= STEPS:
        parser.error(f"--max-seq is more than the {STEPS} steps that are taken")
    if args.one:
        print(json.dumps(measure(args.one, args.layers[0], args.width, args.max_seq)))
        return
    for form, what in FORMS.items():
        found = [apart(form, layers, args) for layers in args.layers]
        said = ", ".join(
            f"{layers} layers {first:.2f} s (step {step * 1e3:.1f} ms)"
            for layers, (first, step) in zip(args.layers, found, strict=True)
        )
        ratio = found[-1][0] / found[0][0]
        print(f"{form} ({what}): {said}; ratio {ratio:.2f}", flush=True)
        if form == "source" and ratio > 2:
            sys.exit(1)


if __name__ == "__main__":
    main()
