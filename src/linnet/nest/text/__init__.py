"""Text in and out of a model: tokenizers, chat templates, and tokens back to whole characters."""

from __future__ import annotations

from linnet.nest.text.chat import ChatTemplate
from linnet.nest.text.detokenize import Detokenizer
from linnet.nest.text.folder import text_from_folder
from linnet.nest.text.gguf import text_from_gguf
from linnet.nest.text.tokenizer import TextModel

__all__ = ["ChatTemplate", "Detokenizer", "TextModel", "text_from_folder", "text_from_gguf"]
