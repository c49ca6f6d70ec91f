"""A toy byte-level tokenizer, as a GGUF file and as `tokenizer.json`, and a toy model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from linnet.nest.text.detokenize import byte_of_char

CHARS = {byte: char for char, byte in byte_of_char().items()}
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
SPECIAL = ["<|end|>", "<|start|>"]
TOKENS = SPECIAL + [CHARS[byte] for byte in range(256)] + ["he", "ll", "hell", "<user>"]
MERGES = ["h e", "l l", "he ll"]
TYPES = [3, 3] + [1] * 256 + [1, 1, 1, 4]


def write_gguf(path: Path, pre: str = "gpt-2", **changes: Any) -> Path:
    """A GGUF file with the toy vocabulary and no tensors; `changes` override its metadata."""
    fields: dict[str, Any] = {
        "model": "gpt2",
        "pre": pre,
        "tokens": TOKENS,
        "types": TYPES,
        "merges": MERGES,
        "eos": 0,
        "template": TEMPLATE,
        **changes,
    }
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(fields["model"])
    if fields["pre"] is not None:
        writer.add_tokenizer_pre(fields["pre"])
    writer.add_token_list(fields["tokens"])
    writer.add_token_types(fields["types"])
    writer.add_token_merges(fields["merges"])
    writer.add_eos_token_id(fields["eos"])
    if fields["template"] is not None:
        writer.add_chat_template(fields["template"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class ScriptedModel:
    """A model whose answers are written down: it gives the next token of a script."""

    def __init__(self, script: Sequence[int], vocab: int = len(TOKENS)) -> None:
        self.script, self.vocab = list(script), vocab
        self.calls: list[tuple[str, Any, int]] = []
        self.at = 0

    def reset_state(self) -> None:
        self.at = 0

    def run_entry(
        self, name: str, inputs: Sequence[Any], generics: dict[str, Any] | None = None
    ) -> Any:
        tokens, pos = inputs
        assert tokens.dtype == np.int32
        self.calls.append((name, tokens.tolist(), pos))
        logits = np.zeros((1, self.vocab), np.float32)
        logits[0, self.script[self.at]] = 5.0
        self.at += 1
        return logits
