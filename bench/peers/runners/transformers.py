"""`transformers`, eager or with `torch.compile` over a cache of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from bench.peers.runners import Clock, Settings, Timing
from bench.peers.runners.scores import losses


def open_runner(settings: Settings) -> TransformersRunner:
    return TransformersRunner(settings)


class TransformersRunner:
    """A plain loop over `model(...)`, which costs less than `generate`. `options`: `compile`."""

    def __init__(self, settings: Settings) -> None:
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(settings.threads)
        torch.set_grad_enabled(False)
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[settings.precision]
        self.model: Any = AutoModelForCausalLM.from_pretrained(
            settings.files / "hf", dtype=dtype, attn_implementation="sdpa"
        ).eval()
        self.positions = settings.positions
        self.compiled = bool(settings.options.get("compile"))
        self.step = torch.compile(self._step, dynamic=False) if self.compiled else self._step

    def describe(self) -> str:
        import transformers

        how = "torch.compile, static cache" if self.compiled else "eager, sdpa"
        return f"transformers {transformers.__version__} (torch {torch.__version__}): {how}"

    def _step(self, token: Any, at: Any, cache: Any) -> Any:
        out = self.model(
            token, past_key_values=cache, use_cache=True, cache_position=at,
            position_ids=at.unsqueeze(0), logits_to_keep=1,
        )  # fmt: skip
        return out.logits[0, -1].argmax()

    def measure(self, prompt: Sequence[int], new_tokens: int) -> Timing:
        cache = self._cache()
        clock = Clock()
        count = len(prompt)
        token = self._step(torch.tensor([list(prompt)]), torch.arange(count), cache)
        clock(int(token))
        for k in range(new_tokens):
            token = self.step(token.view(1, 1), torch.tensor([count + k]), cache)
            clock(int(token))
        return clock.timing()

    def _cache(self) -> Any:
        from transformers import DynamicCache, StaticCache

        if self.compiled:
            return StaticCache(config=self.model.config, max_cache_len=self.positions)
        return DynamicCache(config=self.model.config)

    def score(self, tokens: Sequence[int]) -> list[float]:
        return losses(self.model(torch.tensor([list(tokens)])).logits[0].float().numpy(), tokens)
