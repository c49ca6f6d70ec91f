"""The hand-written `jax.numpy` decode of `bench/jax_decode.py`: one jitted function a step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.peers.runners import Clock, Settings, Timing
from bench.peers.runners.linnet import LinnetRunner


def open_runner(settings: Settings) -> JaxNumpyRunner:
    return JaxNumpyRunner(settings)


class JaxNumpyRunner:
    def __init__(self, settings: Settings) -> None:
        import jax
        import jax.numpy as jnp

        from bench.jax_decode import Plain

        loader = Settings(settings.files, settings.precision, settings.threads,
                          settings.positions, {"backend": "jax_source"})  # fmt: skip
        weights = LinnetRunner(loader).model.parameters
        dtype = {"f32": jnp.float32, "bf16": jnp.bfloat16}[settings.precision]
        self.model = Plain(weights, dtype, -(-settings.positions // 1024) * 1024)
        self.about = f"jax {jax.__version__}: hand-written jax.numpy, one jitted step"

    def describe(self) -> str:
        return self.about

    def measure(self, prompt: Sequence[int], new_tokens: int) -> Timing:
        clock = Clock()
        token = int(np.asarray(self.model.prefill(np.asarray(prompt, np.int32))).argmax())
        clock(token)
        for k in range(new_tokens):
            logits = self.model.step(token, len(prompt) + k)
            token = int(np.asarray(logits).argmax())
            clock(token)
        return clock.timing()
