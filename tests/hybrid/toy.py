"""A toy model of the family, as `transformers` makes it, and its weights as a checkpoint has them.

HeadDim differs from H / Heads, ValueDim from KeyDim, there are twice as many value heads as key
heads, 3 of 8 experts run, and the layers make two groups. The weights are drawn so that a float32
run stays within 1e-4 of a float64 one: otherwise the choice of an expert is a coin toss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

SEED = 6  # gradients too are well conditioned: within 1e-4 of float64
VOCAB = 96
SIZES: dict[str, int | str] = {
    "Vocab": VOCAB,
    "H": 48,
    "Heads": 4,
    "KvHeads": 2,
    "HeadDim": 24,
    "KeyHeads": 2,
    "ValueHeads": 4,
    "KeyDim": 12,
    "ValueDim": 10,
    "Conv": 2 * 2 * 12 + 4 * 10,
    "Width": 4,
    "Experts": 8,
    "TopK": 3,
    "ExpertInner": 20,
    "SharedInner": 28,
    "Groups": 2,
}


@cache
def reference(tied: bool = False, seed: int = SEED) -> Any:
    """`Qwen3_5MoeForCausalLM` in float32 with random weights that bf16 holds exactly."""
    from transformers import Qwen3_5MoeForCausalLM
    from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig

    config = Qwen3_5MoeTextConfig(
        vocab_size=VOCAB,
        hidden_size=48,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=24,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=12,
        linear_value_head_dim=10,
        linear_conv_kernel_dim=4,
        num_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        shared_expert_intermediate_size=28,
        tie_word_embeddings=tied,
        max_position_embeddings=512,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1e7,
            "partial_rotary_factor": 0.25,
            "mrope_section": [1, 1, 1],
            "mrope_interleaved": True,
        },
    )
    torch.manual_seed(seed)
    config._experts_implementation = "eager"
    config._attn_implementation = "eager"
    model: Any = Qwen3_5MoeForCausalLM(config)
    model = model.eval().float()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(scaled(name, drawn, tied).bfloat16().float())
    return model


def scaled(name: str, drawn: torch.Tensor, tied: bool) -> torch.Tensor:
    """A parameter's values from normal ones: large enough to matter, small enough to be stable."""
    stream = 0.2 if tied else 1.0  # a head that is the embedding wants it small
    if name.endswith("A_log"):
        return drawn.abs() * 0.7
    if name.endswith("embed_tokens.weight"):
        return drawn * stream
    if name.endswith("conv1d.weight"):
        return drawn * 0.5
    if name.endswith("linear_attn.norm.weight"):
        return 1 + drawn * 0.2
    if drawn.dim() == 1:
        return drawn * 0.2
    if name.endswith("mlp.gate.weight"):
        return drawn * 0.6
    out = name.endswith(("o_proj.weight", "out_proj.weight", "down_proj"))
    return drawn * (0.5 * stream if out else 1.0) / math.sqrt(drawn.shape[-1])


def checkpoint(tied: bool = False, seed: int = SEED) -> dict[str, torch.Tensor]:
    """The weights as the published checkpoint names them."""
    named = reference(tied, seed).state_dict()
    renamed: dict[str, torch.Tensor] = {
        name.replace("model.", "model.language_model.", 1): value for name, value in named.items()
    }
    if tied:
        renamed["lm_head.weight"] = renamed["model.language_model.embed_tokens.weight"]
    return renamed


@torch.no_grad()
def logits(ids: Sequence[int], tied: bool = False, seed: int = SEED) -> torch.Tensor:
    """`transformers`' logits `[S, Vocab]` of one text."""
    out = reference(tied, seed)(torch.tensor([list(ids)])).logits[0]
    assert isinstance(out, torch.Tensor)
    return out


def prompt(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, VOCAB, (count,), generator=generator).tolist()
