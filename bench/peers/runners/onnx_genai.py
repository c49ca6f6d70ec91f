"""onnxruntime-genai over the models that its own builder makes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import onnxruntime_genai as og

from bench.peers.runners import Clock, Settings, Timing
from bench.peers.runners.scores import losses


def open_runner(settings: Settings) -> OnnxGenaiRunner:
    return OnnxGenaiRunner(settings)


class OnnxGenaiRunner:
    """The precision names the folder of the built model."""

    def __init__(self, settings: Settings) -> None:
        folder = settings.files / "onnx_genai" / settings.precision
        config = og.Config(str(folder))
        options = {"intra_op_num_threads": settings.threads, "inter_op_num_threads": 1}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
        self.model = og.Model(config)
        self.positions = settings.positions
        self.precision = settings.precision

    def describe(self) -> str:
        import onnxruntime

        versions = f"{og.__version__}, onnxruntime {onnxruntime.__version__}"
        return f"onnxruntime-genai {versions}: {self.precision}, past and present in one buffer"

    def _generator(self) -> og.Generator:
        params = og.GeneratorParams(self.model)
        # The shortest length keeps an end token from ending the measurement.
        params.set_search_options(
            max_length=self.positions, min_length=self.positions, do_sample=False
        )
        return og.Generator(self.model, params)

    def measure(self, prompt: Sequence[int], new_tokens: int) -> Timing:
        generator = self._generator()
        clock = Clock()
        generator.append_tokens(np.asarray(prompt, np.int32))
        for _ in range(new_tokens + 1):
            generator.generate_next_token()
            clock(int(generator.get_next_tokens()[0]))
        return clock.timing()

    def score(self, tokens: Sequence[int]) -> list[float]:
        generator = self._generator()
        generator.append_tokens(np.asarray(tokens, np.int32))
        return losses(generator.get_output("logits")[0], tokens)
