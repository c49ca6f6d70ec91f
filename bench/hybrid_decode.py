"""A decode step of one group of four layers of qwen3.6-35b-a3b at its real shapes.

    python bench/hybrid_decode.py [--rounds 20] [--threads 2]

Random bf16 weights (6.6 GiB), one row, a vocabulary of 256 so that the layers are what is
measured. Prints the time of a step, the bytes of weights it must read (every dense matrix, and of
the experts the chosen ones), the rate that makes, the rate `torch.nn.functional.linear` reaches
over matrices of the same shapes in the same run, turn by turn, and the memory a step adds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

CARD = Path(__file__).parent.parent / "models" / "qwen3.6-35b-a3b"
EXPERTS, TOP_K = 256, 8


def main() -> None:
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--numerics", default="fast")
    options.add_argument("--context", type=int, default=64, help="positions before the first step")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    with torch.no_grad():
        print(json.dumps(measure(given.rounds, given.context, given.numerics), indent=2))


def measure(rounds: int, context: int, numerics: str) -> dict[str, Any]:
    model = loaded(numerics)
    weights = dict(model.named_parameters())
    matrices = [w for name, w in weights.items() if w.dim() == 2 and "embed" not in name]
    stacks = [w for w in weights.values() if w.dim() == 3 and w.shape[0] == EXPERTS]
    total = sum(w.nbytes for w in matrices) + sum(w.nbytes // EXPERTS * TOP_K for w in stacks)
    generator = torch.Generator().manual_seed(1)
    text = torch.randint(0, 256, (1, context + rounds + 3), generator=generator, dtype=torch.int32)
    model.run_entry("prefill", [text[:, :context], 0])

    def decode(at: int) -> None:
        model.run_entry("decode", [text[:, at : at + 1], at])

    steps, plain = [], []
    for turn in range(rounds + 2):
        step = timed(partial(decode, context + turn))
        linear = timed(partial(read_all, matrices, stacks, generator))
        if turn >= 2:
            steps.append(step)
            plain.append(linear)
    step, linear = statistics.median(steps), statistics.median(plain)
    added = peak_bytes(partial(decode, context + rounds + 2))
    return {
        "threads": torch.get_num_threads(),
        "weights a step must read, MB": round(total / 1e6, 1),
        "decode step, ms": round(step * 1e3, 2),
        "decode rate, GB/s": round(total / step / 1e9, 2),
        "F.linear over the same shapes, ms": round(linear * 1e3, 2),
        "F.linear rate, GB/s": round(total / linear / 1e9, 2),
        "share of F.linear's rate": round(linear / step, 3),
        "memory a step adds, MB": round(added / 1e6, 2),
    }


def loaded(numerics: str) -> Any:
    import linnet.torch
    from linnet import nest

    card = nest.Card.read(CARD)
    sizes = {**card.generics, "Vocab": 256, "Groups": 1, "Batch": 1, "MaxSeq": 4096}
    model = linnet.torch.load(card.source_path, root="Model", generics=sizes, numerics=numerics)
    generator = torch.Generator().manual_seed(0)
    block = torch.randn(1 << 20, generator=generator).bfloat16()
    for name, weight in model.named_parameters():
        scale = 0.02 if weight.dim() > 1 else 0.1
        fill(weight, block * scale)
        if name.endswith("linear_attn.norm.weight"):
            weight.add_(1)
    return model


def fill(weight: torch.Tensor, block: torch.Tensor) -> None:
    """The block over and over: drawing billions of numbers one by one would take minutes."""
    flat = weight.view(-1)
    for start in range(0, len(flat), len(block)):
        part = flat[start : start + len(block)]
        part.copy_(block[: len(part)])


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def read_all(
    matrices: list[torch.Tensor], stacks: list[torch.Tensor], generator: torch.Generator
) -> None:
    """One product of a row with each dense matrix and with eight experts of each stack."""
    for matrix in (*matrices, *chosen(stacks, generator)):
        F.linear(torch.ones(1, matrix.shape[1], dtype=matrix.dtype), matrix)


def chosen(stacks: list[torch.Tensor], generator: torch.Generator) -> Iterator[torch.Tensor]:
    for stack in stacks:
        for expert in torch.randperm(EXPERTS, generator=generator)[:TOP_K].tolist():
            yield stack[expert]


def peak_bytes(call: Callable[[], Any]) -> int:
    """The most memory that a call's tensors hold at once beyond what there was."""
    with torch.profiler.profile(profile_memory=True) as profile:
        call()
    held = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak


if __name__ == "__main__":
    main()
