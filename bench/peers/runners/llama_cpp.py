"""llama.cpp through llama-cpp-python's low-level calls: `llama_decode` and the greedy choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np

from bench.peers.runners import Clock, Settings, Timing
from bench.peers.runners.scores import losses


def open_runner(settings: Settings) -> LlamaRunner:
    return LlamaRunner(settings)


class LlamaRunner:
    """`options`: `gguf` (which of the prepared files), `flash_attn`, `cache` (f16, bf16, f32)."""

    def __init__(self, settings: Settings) -> None:
        options = settings.options
        self.file = options["gguf"]
        self.flash = bool(options.get("flash_attn", True))
        self.cache = options.get("cache", "f16")
        self.settings = settings
        self.model = self._open(all_logits=False)
        self.scoring: Any = None

    def _open(self, all_logits: bool) -> Any:
        kind = getattr(llama_cpp, f"GGML_TYPE_{self.cache.upper()}")
        return llama_cpp.Llama(
            str(self.settings.files / "gguf" / f"{self.file}.gguf"),
            n_ctx=self.settings.positions,
            n_batch=512,
            n_ubatch=512,
            n_threads=self.settings.threads,
            n_threads_batch=self.settings.threads,
            flash_attn=self.flash,
            type_k=kind,
            type_v=kind,
            logits_all=all_logits,
            verbose=False,
        )

    def describe(self) -> str:
        features = llama_cpp.llama_print_system_info().decode()
        used = [f for f in ("AVX512_BF16", "AVX512_VNNI", "AMX_INT8", "AVX512", "AVX2")
                if f"{f} = 1" in features]  # fmt: skip
        flash = "with" if self.flash else "without"
        return (
            f"llama.cpp (llama-cpp-python {llama_cpp.__version__}; {' '.join(used)}): {self.file}, "
            f"{self.cache} cache, {flash} flash attention"
        )

    def measure(self, prompt: Sequence[int], new_tokens: int) -> Timing:
        self.model.reset()
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.model.ctx), True)
        clock = Clock()
        token = self._step(prompt, 0)
        clock(token)
        for k in range(new_tokens):
            token = self._step([token], len(prompt) + k)
            clock(token)
        return clock.timing()

    def _step(self, tokens: Sequence[int], at: int) -> int:
        """Tokens from position `at` on; the best token after them."""
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        batch = llama_cpp.llama_batch_get_one(array, len(tokens))
        if llama_cpp.llama_decode(self.model.ctx, batch) != 0:
            raise RuntimeError(f"llama_decode failed at position {at}")
        logits: Any = llama_cpp.llama_get_logits_ith(self.model.ctx, -1)
        row = np.ctypeslib.as_array(logits, shape=(self.model.n_vocab(),))
        return int(row.argmax())

    def score(self, tokens: Sequence[int]) -> list[float]:
        if self.scoring is None:
            self.scoring = self._open(all_logits=True)
        self.scoring.reset()
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.scoring.ctx), True)
        self.scoring.eval(list(tokens))
        return losses(self.scoring.scores[: len(tokens)], tokens)
