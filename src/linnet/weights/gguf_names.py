"""GGUF tensor names and rows back to those of the Hugging Face checkpoint they came from.

GGUF files of the `llama` architecture hold the query and key projections with each head's rows
interleaved (for a rotary embedding that turns neighbours); checkpoints hold the two halves one
after the other. The Qwen architectures keep the checkpoint's order.
"""

from __future__ import annotations

import re

PERMUTED = frozenset({"llama"})
KNOWN = PERMUTED | {"qwen2", "qwen3"}

_WHOLE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(0|[1-9][0-9]{0,5})\.([a-z_]+)\.(weight|bias)", re.ASCII)


def checkpoint_name(name: str) -> str:
    """The checkpoint's name of a GGUF tensor; a name with no counterpart stays as it is."""
    found = _LAYER.fullmatch(name)
    if found is not None and found[2] in _IN_LAYER:
        return f"model.layers.{found[1]}.{_IN_LAYER[found[2]]}.{found[3]}"
    stem, _, kind = name.rpartition(".")
    if stem in _WHOLE and kind in ("weight", "bias"):
        return f"{_WHOLE[stem]}.{kind}"
    return name


def interleaved_heads(name: str, architecture: str) -> str | None:
    """The metadata key of the head count whose rows are interleaved, or None for plain rows."""
    found = _LAYER.fullmatch(name)
    if architecture not in PERMUTED or found is None:
        return None
    match found[2]:
        case "attn_q":
            return f"{architecture}.attention.head_count"
        case "attn_k":
            return f"{architecture}.attention.head_count_kv"
        case _:
            return None
