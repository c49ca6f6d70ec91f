"""OpenVINO GenAI's `LLMPipeline` over an exported folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
import openvino_genai as genai

from bench.peers.runners import Clock, Settings, Timing
from bench.peers.runners.scores import losses


def open_runner(settings: Settings) -> OpenVinoRunner:
    return OpenVinoRunner(settings)


class _Streamer(genai.StreamerBase):  # type: ignore[misc]
    """Stamps each token as the pipeline hands it out."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def write(self, tokens: int | list[int]) -> Any:
        for token in tokens if isinstance(tokens, list) else [tokens]:
            self.clock(int(token))
        return genai.StreamingStatus.RUNNING

    def end(self) -> None:
        """Nothing is held back, so there is nothing to hand out at the end."""


class OpenVinoRunner:
    """`options`: `folder` (of the exported models), `backend` (`SDPA` or `PA`), and `compute` (the
    precision of arithmetic, `f32` or `bf16`); others go to the pipeline as properties."""

    def __init__(self, settings: Settings) -> None:
        options = dict(settings.options)
        self.folder = settings.files / "openvino" / options.pop("folder", settings.precision)
        self.backend = options.pop("backend", "SDPA")
        self.compute = options.pop("compute", "f32")
        self.properties: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": self.compute,
            "INFERENCE_NUM_THREADS": settings.threads,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
        } | options
        extra: dict[str, Any] = {"ATTENTION_BACKEND": self.backend}
        if self.backend == "PA":
            # Else the second run of a prompt would find the first one's cache.
            extra["scheduler_config"] = genai.SchedulerConfig()
            extra["scheduler_config"].enable_prefix_caching = False
        self.pipeline = genai.LLMPipeline(str(self.folder), "CPU", **self.properties, **extra)

    def describe(self) -> str:
        return (
            f"OpenVINO GenAI {genai.__version__.split('-')[0]}: weights {self.folder.name}, "
            f"arithmetic {self.compute}, {self.backend}"
        )

    def measure(self, prompt: Sequence[int], new_tokens: int) -> Timing:
        ids = np.asarray([list(prompt)], np.int64)
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        config = genai.GenerationConfig(
            max_new_tokens=new_tokens + 1, ignore_eos=True, do_sample=False
        )
        clock = Clock()
        self.pipeline.generate(inputs, config, _Streamer(clock))
        return clock.timing()

    def score(self, tokens: Sequence[int]) -> list[float]:
        model = ov.Core().read_model(self.folder / "openvino_model.xml")
        request = ov.compile_model(model, "CPU", self.properties).create_infer_request()
        ids = np.asarray([list(tokens)], np.int64)
        given: dict[str, Any] = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "position_ids": np.arange(ids.shape[1], dtype=np.int64)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        return losses(request.infer(given)["logits"][0], tokens)
