"""Tokens to text as they come, never half a character.

A token is a run of bytes, and a character may be spread over several tokens. Byte-level tokenizers
give each token's bytes, so a UTF-8 decoder that keeps unfinished bytes is exact. For the others the
text of the last few tokens is decoded twice, with and without the new one, and what grew is new.
"""

from __future__ import annotations

import codecs
import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tokenizers


class Detokenizer(ABC):
    """`add` takes one id and gives the text that is now certain; `end` what is left, if whole."""

    @staticmethod
    def of(tokenizer: tokenizers.Tokenizer, special: frozenset[int]) -> Detokenizer:
        """The decoder that suits a tokenizer."""
        if _byte_level(tokenizer):
            return _ByteLevel(tokenizer, special)
        return _Windowed(tokenizer, special)

    @abstractmethod
    def add(self, token: int) -> str: ...

    def end(self) -> str:
        """Bytes that never became a character are dropped."""
        return ""


def _byte_level(tokenizer: tokenizers.Tokenizer) -> bool:
    from tokenizers import decoders

    decoder = tokenizer.decoder
    if isinstance(decoder, decoders.ByteLevel):
        return True
    if isinstance(decoder, decoders.Sequence):
        state = json.loads(decoder.__getstate__())
        return [d.get("type") for d in state.get("decoders", [])] == ["ByteLevel"]
    return False


def byte_of_char() -> dict[str, int]:
    """GPT-2's printable character for each byte, turned round.

    Printable Latin-1 characters stand for themselves, the other bytes for U+0100 onwards in order.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in plain}
    others = [byte for byte in range(256) if byte not in plain]
    table |= {chr(0x100 + n): byte for n, byte in enumerate(others)}
    return table


class _ByteLevel(Detokenizer):
    def __init__(self, tokenizer: tokenizers.Tokenizer, special: frozenset[int]) -> None:
        self._tokenizer, self._special = tokenizer, special
        self._added = set(tokenizer.get_added_tokens_decoder())
        self._bytes = byte_of_char()
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        if token in self._special:
            return ""
        piece = self._tokenizer.id_to_token(token)
        if piece is None:  # padding of the vocabulary, which names nothing
            return ""
        if token in self._added:  # kept as plain text, not in the byte alphabet
            data = piece.encode("utf-8")
        else:
            data = b"".join(self._byte(char) for char in piece)
        return self._utf8.decode(data)

    def _byte(self, char: str) -> bytes:
        byte = self._bytes.get(char)
        return char.encode("utf-8", "replace") if byte is None else bytes((byte,))


class _Windowed(Detokenizer):
    def __init__(self, tokenizer: tokenizers.Tokenizer, special: frozenset[int]) -> None:
        self._tokenizer, self._special = tokenizer, special
        self._ids: list[int] = []
        self._told = 0  # ids before this are text that was given out

    def add(self, token: int) -> str:
        if token in self._special:
            return ""
        self._ids.append(token)
        before = self._text(self._ids[: self._told])
        now = self._text(self._ids)
        if now.endswith("\ufffd") or not now.startswith(before) or now == before:
            return ""
        # Joining marks depend on the token before, so the last one told stays as context.
        self._ids = self._ids[self._told :]
        self._told = len(self._ids)
        return now[len(before) :]

    def _text(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False)) if ids else ""
