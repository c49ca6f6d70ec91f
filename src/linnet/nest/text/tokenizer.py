"""A model's way with text: tokenizer, end tokens and chat template, from any file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from linnet.nest.errors import fail
from linnet.nest.text.chat import ChatTemplate
from linnet.nest.text.detokenize import Detokenizer

if TYPE_CHECKING:
    import tokenizers

PROMPT_LIMIT = 4 << 20
"""Characters of a prompt; a longer one would only be refused after the work of splitting it."""


@dataclass(frozen=True, slots=True)
class TextModel:
    """Text to token ids and back.

    `prefix` are ids that a raw prompt starts with (a begin-of-text token); a chat template writes
    its own. `special` are ids that never show as text.
    """

    tokenizer: tokenizers.Tokenizer
    end_tokens: frozenset[int]
    chat: ChatTemplate | None = None
    prefix: tuple[int, ...] = ()
    special: frozenset[int] = field(default=frozenset())

    def encode(self, text: str) -> list[int]:
        """Ids of a raw prompt, with the begin-of-text token where the model wants one."""
        return [*self.prefix, *self._ids(text)]

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Ids of a conversation through the chat template, ready for the model's answer."""
        if self.chat is None:
            fail("E5025", "this model has no chat template", help="pass the prompt raw (--raw)")
        return self._ids(self.chat.render(messages))

    def detokenizer(self) -> Detokenizer:
        """A fresh decoder for one answer's tokens."""
        return Detokenizer.of(self.tokenizer, self.special)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of finished ids, special tokens left out."""
        stream = self.detokenizer()
        return "".join(map(stream.add, ids)) + stream.end()

    def _ids(self, text: str) -> list[int]:
        if len(text) > PROMPT_LIMIT:
            fail(
                "E5026", f"the prompt has {len(text)} characters, past the limit of {PROMPT_LIMIT}"
            )
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            fail("E5026", "the prompt is not valid Unicode text")
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)
