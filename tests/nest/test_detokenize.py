"""Tokens to text as they come: never half a character, nothing lost."""

from __future__ import annotations

import random
from pathlib import Path

from nest_toy import TOKENS, write_gguf
from tokenizers import Tokenizer, decoders, models

from linnet.nest.text import Detokenizer, text_from_gguf

TEXT = "aé漢🙂👩‍👩‍👧 z"


def test_bytes_wait_for_their_character(tmp_path: Path) -> None:
    model = text_from_gguf(write_gguf(tmp_path / "m.gguf"))
    stream = model.detokenizer()
    told = [stream.add(token) for token in model.encode("é🙂!")]
    assert told == ["", "é", "", "", "", "🙂", "!"]


def test_any_tokens_give_valid_text(tmp_path: Path) -> None:
    model = text_from_gguf(write_gguf(tmp_path / "m.gguf"))
    rng = random.Random(4)
    for _ in range(200):
        ids = [rng.randrange(len(TOKENS) + 3) for _ in range(30)]
        stream = model.detokenizer()
        told = "".join(map(stream.add, ids)) + stream.end()
        data = b"".join(
            bytes([i - 2]) if 2 <= i < 258 else TOKENS[i].encode() if 258 <= i < 262 else b""
            for i in ids
        )
        whole = data.decode("utf-8", "replace")
        assert whole.startswith(told) and set(whole[len(told) :]) <= {"\ufffd"}


def test_an_unfinished_end_is_dropped(tmp_path: Path) -> None:
    model = text_from_gguf(write_gguf(tmp_path / "m.gguf"))
    assert model.decode(model.encode("a🙂")[:-1]) == "a"


def test_tokenizers_that_are_not_byte_level() -> None:
    vocab = {"▁": 0, "▁a": 1, "b": 2, "<s>": 3}
    vocab |= {f"<0x{byte:02X}>": 4 + byte for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(vocab, [], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    stream = Detokenizer.of(tokenizer, frozenset({3}))
    ids = [1, 2, 3, 0, *(4 + byte for byte in "🙂é".encode()), 1]
    told = [stream.add(token) for token in ids]
    assert "".join(told) == " ab 🙂é a"
    assert not any("\ufffd" in piece for piece in told)
