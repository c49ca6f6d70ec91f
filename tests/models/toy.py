"""A small random Qwen3 in transformers, and ours over the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from linnet import nest
from linnet.packages import models_root

SIZES = {
    "Vocab": 160, "H": 64, "Heads": 4, "KvHeads": 2, "HeadDim": 32, "Inner": 96, "Layers": 3,
}  # fmt: skip


def reference(tied: bool = False) -> Any:
    """A transformers model: norms away from 1, weights that bf16 holds exactly."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=160, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
        intermediate_size=96, num_hidden_layers=3, rope_theta=1e6, rms_norm_eps=1e-6,
        max_position_embeddings=512, tie_word_embeddings=tied, attention_bias=False,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config).eval().float()
    for parameter in model.parameters():
        wide = parameter.dim() > 1
        values = torch.randn_like(parameter) * (0.3 if wide else 0.2) + (0.0 if wide else 1.0)
        parameter.data = values.bfloat16().float()
    return model


def ours(model: Any, card: str = "qwen3-8b", **options: Any) -> Any:
    """Our model over the reference's weights, given as a mapping."""
    weights = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    sizes = {"Batch": 1, "MaxSeq": 64, "T": "f32"}
    generics = {**SIZES, **sizes, **options.pop("generics", {})}
    folder: Path = models_root() / card
    return nest.load(
        str(folder), generics=generics, weights=weights, cast_dtype=True, compile=False, **options
    )


def int32(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


@torch.no_grad()
def logits(model: Any, ids: list[int]) -> torch.Tensor:
    found: torch.Tensor = model(torch.tensor([ids])).logits[0]
    return found
