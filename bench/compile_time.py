"""How long checking and generating take, and whether what is generated has the promised shape.

    python bench/compile_time.py [--inductor]

Prints one line a figure with its target. Packages are this repository's, and the two published
ones when `../shared/seeds` is there. `--inductor` adds compile times (a minute or two).
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import linnet

ROOT = Path(__file__).resolve().parent.parent
SEEDS = ROOT.parent / "shared" / "seeds"
QWEN3 = {
    "Vocab": 151936, "H": 4096, "Heads": 32, "KvHeads": 8, "HeadDim": 128, "Inner": 12288,
    "Layers": 36, "Batch": 1, "MaxSeq": 40960, "T": "bf16",
}  # fmt: skip
TOY = {
    "Vocab": 160, "H": 64, "Heads": 4, "KvHeads": 2, "HeadDim": 32, "Inner": 96, "Batch": 1,
    "MaxSeq": 2048, "T": "f32",
}  # fmt: skip


def report(what: str, value: float | str, target: str = "") -> None:
    shown = f"{value:.3f} s" if isinstance(value, float) else value
    print(f"{what:64} {shown:>12}   {target}", flush=True)


def packages() -> list[Path]:
    seeds = [SEEDS / "qwen3-8b", SEEDS / "qwen3.6-35b-a3b"]
    return [path for path in seeds if path.is_dir()] or [ROOT / "models" / "decoder"]


def model() -> Path:
    seed = SEEDS / "qwen3-8b"
    return seed if seed.is_dir() else ROOT / "models" / "decoder"


def check_times() -> None:
    paths = [*map(str, packages()), str(ROOT / "src" / "linnet" / "stdlib")]
    command = [sys.executable, "-m", "linnet", "check", *paths]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    report("check both packages and the library, new process", min(times), "under 2 s")
    from linnet.elaborate import check
    from linnet.packages import load_sources

    check(load_sources(paths))
    start = time.perf_counter()
    check(load_sources(paths))
    report("the same again in one process", time.perf_counter() - start, "under 0.3 s")


def generation_times() -> None:
    from linnet.torch import generate_source

    program = linnet.load_program(model())
    names = [name for name in program.blocks if name.endswith("::Model")]
    entries = program.entries(names[0])
    total = 0.0
    sources = {}
    for entry in entries:
        start = time.perf_counter()
        sources[entry] = generate_source(program, "Model", entry, QWEN3)
        total += time.perf_counter() - start
    report(f"generate all {len(entries)} entries at 36 layers", total, "under 3 s")
    small = {e: generate_source(program, "Model", e, {**QWEN3, "Layers": 2}) for e in entries}
    same = all(_numbers_aside(sources[e]) == _numbers_aside(small[e]) for e in entries)
    report("2 and 36 layers differ in numbers only", "yes" if same else "NO")
    repeated = max(_functions_a_method(source) for source in sources.values())
    report("most functions for one specialised block method", str(repeated), "1")


def _numbers_aside(source: str) -> str:
    return re.sub(r"\d+", "#", source)


def _functions_a_method(source: str) -> int:
    """The most definitions with the very same text, names aside."""
    bodies: Counter[str] = Counter()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            node.name = "_"
            bodies[ast.unparse(node)] += 1
    return max(bodies.values())


def hoisting_counts() -> None:
    """How often the rotary table's row and the mask are made in one decode step."""
    import torch

    import linnet.torch

    counts = []
    for layers in (2, 12):
        loaded = linnet.torch.load(
            model(), root="Model", generics={**TOY, "Layers": layers}, compile=False,
            numerics="exact",
        )  # fmt: skip
        token = torch.zeros((1, 1), dtype=torch.int32)
        loaded.run_entry("decode", [token, 3])
        with torch.profiler.profile() as profile:
            loaded.run_entry("decode", [token, 3])
        events = Counter(event.name for event in profile.events())
        counts.append(
            sum(events[name] for name in ("aten::cos", "aten::sin", "aten::le", "aten::arange"))
        )
    report("cos, sin, comparison and arange calls at 2 and 12 layers", f"{counts[0]}, {counts[1]}",
           "equal")  # fmt: skip


def prompt_lengths() -> None:
    import torch

    import linnet.torch

    loaded = linnet.torch.load(
        model(), root="Model", generics={**TOY, "Layers": 2}, compile=False
    )  # fmt: skip
    for length in (1, 2, 17, 2000):
        loaded.run_entry("forward", [torch.zeros((1, length), dtype=torch.int32)])
    report("one module serves prompts of 1, 2, 17 and 2,000 tokens", "yes")


def inductor_times() -> None:
    import torch
    import torch._inductor.config
    from torch._dynamo.utils import counters

    import linnet.torch

    times = []
    token = torch.zeros((1, 1), dtype=torch.int32)
    # Nothing compiled before may help, and starting the compiler is not part of either figure.
    torch._inductor.config.force_disable_caches = True
    torch.compile(torch.sin)(torch.zeros(3))
    for layers in (2, 36):
        torch._dynamo.reset()
        loaded = linnet.torch.load(
            model(), root="Model", generics={**TOY, "Layers": layers}, compile="inductor"
        )
        start = time.perf_counter()
        for position in (3, 4):
            loaded.run_entry("decode", [token, position])
        times.append(time.perf_counter() - start)
    report("inductor, decode at 2 layers", times[0])
    report("inductor, decode at 36 layers", times[1], f"at most twice: {times[1] / times[0]:.2f}")
    for length in (5, 9):
        loaded.run_entry("prefill", [torch.zeros((1, length), dtype=torch.int32), 0])
    before = counters["stats"]["unique_graphs"]
    loaded.run_entry("prefill", [torch.zeros((1, 33), dtype=torch.int32), 0])
    compiled = counters["stats"]["unique_graphs"] - before
    report("graphs compiled for a third prompt length", str(compiled), "0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inductor", action="store_true", help="time torch.compile as well")
    arguments = parser.parse_args()
    check_times()
    generation_times()
    hoisting_counts()
    prompt_lengths()
    if arguments.inductor:
        inductor_times()


if __name__ == "__main__":
    main()
