"""Ours, on any backend, through `nest.load` and what `linnet run` does for each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.peers.runners import Clock, Settings, Timing
from bench.peers.runners.scores import losses

MODEL = "smollm2-135m-instruct"


def open_runner(settings: Settings) -> LinnetRunner:
    return LinnetRunner(settings)


class LinnetRunner:
    """`options`: `backend`, `dtype` (of activations and caches), `weights_format`, `gguf` (the
    weight file, of those prepared)."""

    def __init__(self, settings: Settings) -> None:
        from linnet import nest

        options = dict(settings.options)
        self.backend = options.pop("backend", "native")
        dtype = options.pop("dtype", settings.precision)
        gguf = options.pop("gguf", "F32")
        weights = settings.files / "gguf" / f"{gguf}.gguf"
        if self.backend == "native":
            options.setdefault("threads", settings.threads)
        if self.backend == "torch":
            import torch

            torch.set_num_threads(settings.threads)
            torch.set_grad_enabled(False)
        # Compiled code is kept for each `MaxSeq`: the same one as `linnet run` would take.
        sizes: dict[str, Any] = {"Batch": 1, "MaxSeq": -(-settings.positions // 1024) * 1024}
        self.model = nest.load(
            MODEL, self.backend, generics=sizes | {"T": dtype}, weights=weights, cast_dtype=True,
            progress=nest.Progress(quiet=True), **options,
        )  # fmt: skip
        form = options.get("weights_format") or dtype
        self.about = f"{self.backend}, weights {form} from {gguf}, the rest {dtype}"

    def describe(self) -> str:
        from linnet.version import __version__

        return f"linnet {__version__}: {self.about}"

    def measure(self, prompt: Sequence[int], new_tokens: int) -> Timing:
        from linnet.nest.generate import generate

        clock = Clock()
        for token in generate(self.model, prompt, new_tokens + 1):
            clock(token)
        return clock.timing()

    def score(self, tokens: Sequence[int]) -> list[float]:
        return losses(self.logits(tokens), tokens)

    def logits(self, tokens: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The logits after each token, as f32 `[S, Vocab]`."""
        logits = self.model.run_entry("forward", [np.asarray([tokens], np.int32)])
        if hasattr(logits, "detach"):
            logits = logits.detach().float().cpu().numpy()
        return np.asarray(logits)[0].astype(np.float32)
