"""Decode steps and prompts of SmolLM2 (f32, one row) on ONNX Runtime, beside other runners.

    python bench/onnx_decode.py [--prompt 512] [--steps 24] [--rounds 3] [--threads 2]
        [--genai FOLDER] [--torch]

`--genai` is a folder that onnxruntime-genai's model builder made from the same weights
(`python -m onnxruntime_genai.models.builder -i HF_FOLDER -o FOLDER -p fp32 -e cpu`); `--torch` adds
Linnet's PyTorch model. Every runner takes the same prompt and then steps greedily; they take turns,
and the medians over all rounds are printed with the rate at which a step reads the weights.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any, Protocol

import numpy as np

from linnet import nest

CARD = "smollm2-135m-instruct"
VOCAB = 49_152


class Runner(Protocol):
    """A model that takes a prompt and then one token a step, giving the likeliest next one."""

    def start(self, tokens: list[int]) -> int: ...

    def step(self, token: int, position: int) -> int: ...


class Ours:
    """A model of Linnet's, on any backend whose results NumPy can read."""

    def __init__(self, backend: str, positions: int, **options: Any) -> None:
        self.model = nest.load(CARD, backend, generics={"MaxSeq": positions}, **options)

    def start(self, tokens: list[int]) -> int:
        return self._call("prefill", tokens, 0)

    def step(self, token: int, position: int) -> int:
        return self._call("decode", [token], position)

    def _call(self, entry: str, tokens: list[int], position: int) -> int:
        logits = self.model.run_entry(entry, [np.array([tokens], np.int32), position])
        return int(np.asarray(logits).argmax())

    def weight_bytes(self) -> int:
        unique = {id(array): array.nbytes for array in self.model.parameters.values()}
        return sum(unique.values())


class GenAi:
    """onnxruntime-genai's generator over a folder its builder made."""

    def __init__(self, folder: str, positions: int, threads: int) -> None:
        import onnxruntime_genai as og

        self.og, self.positions = og, positions
        config = og.Config(folder)
        session = {"decoder": {"session_options": {"intra_op_num_threads": threads}}}
        config.overlay(json.dumps({"model": session}))
        self.model = og.Model(config)
        self.generator: Any = None

    def start(self, tokens: list[int]) -> int:
        params = self.og.GeneratorParams(self.model)
        params.set_search_options(max_length=self.positions, do_sample=False)
        self.generator = self.og.Generator(self.model, params)
        self.generator.append_tokens(np.array(tokens, np.int32))
        return self._next()

    def step(self, token: int, position: int) -> int:
        return self._next()

    def _next(self) -> int:
        self.generator.generate_next_token()
        return int(self.generator.get_next_tokens()[0])


def measured(runner: Runner, prompt: list[int], steps: int) -> tuple[float, list[float], list[int]]:
    """Seconds of the prompt and of each step, and the tokens found."""
    begun = time.perf_counter()
    found = [runner.start(prompt)]
    first = time.perf_counter() - begun
    each: list[float] = []
    for position in range(len(prompt), len(prompt) + steps):
        begun = time.perf_counter()
        found.append(runner.step(found[-1], position))
        each.append(time.perf_counter() - begun)
    return first, each, found


def main() -> None:
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--prompt", type=int, default=512)
    options.add_argument("--steps", type=int, default=24)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--genai", help="a folder that onnxruntime-genai's builder made")
    options.add_argument("--torch", action="store_true", help="Linnet's PyTorch model too")
    given = options.parse_args()
    positions = given.prompt + given.steps + 8
    ours = Ours("onnx_model", positions, threads=given.threads)
    runners: dict[str, Runner] = {"linnet on onnxruntime": ours}
    if given.genai:
        runners["onnxruntime-genai"] = GenAi(given.genai, positions, given.threads)
    if given.torch:
        import torch

        torch.set_num_threads(given.threads)
        torch.set_grad_enabled(False)
        runners["linnet on torch"] = Ours("torch", positions)
    size = ours.weight_bytes()
    print(json.dumps(compared(runners, given, size), indent=2))


def compared(runners: dict[str, Runner], given: Any, size: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    prompt = rng.integers(100, VOCAB - 100, given.prompt).tolist()
    firsts: dict[str, list[float]] = {name: [] for name in runners}
    steps: dict[str, list[float]] = {name: [] for name in runners}
    tokens: dict[str, list[int]] = {}
    for turn in range(given.rounds + 1):
        for name, runner in runners.items():
            first, each, tokens[name] = measured(runner, prompt, given.steps if turn else 2)
            if turn:  # the first makes sessions
                firsts[name].append(first)
                steps[name] += each
    shown: dict[str, Any] = {"weights_mib": round(size / 2**20)}
    for name in runners:
        step = statistics.median(steps[name])
        shown[name] = {
            "prompt_ms": round(1e3 * statistics.median(firsts[name]), 1),
            "step_ms": round(1e3 * step, 2),
            "least_step_ms": round(1e3 * min(steps[name]), 2),
            "gb_per_s": round(size / step / 1e9, 2),
            "tokens": tokens[name][:8],
        }
    return shown


if __name__ == "__main__":
    main()
