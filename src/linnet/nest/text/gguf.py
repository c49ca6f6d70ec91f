"""Tokenizer, end tokens and chat template from a GGUF file's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linnet.nest.errors import fail, quoted
from linnet.nest.text.chat import ChatTemplate
from linnet.nest.text.tokenizer import TextModel
from linnet.weights.gguf_header import read_header

if TYPE_CHECKING:
    import tokenizers
    from tokenizers import pre_tokenizers

_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How text is cut before byte-pair merges, by the name GGUF files give it.

    `pattern` splits (empty: GPT-2's own rule), `digits` cuts every digit off first, `nfc`
    normalises, `whole_words` takes a piece that is itself a token without merging, `begins` says
    whether a begin-of-text token is added where the file is silent.
    """

    pattern: str = ""
    digits: bool = False
    nfc: bool = False
    whole_words: bool = False
    begins: bool = False


PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "gpt-2": PreTokenizer(),
    "smollm": PreTokenizer(digits=True),
    "llama-bpe": PreTokenizer(
        rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}{{1,3}}|{_REST}", whole_words=True, begins=True
    ),
    "qwen2": PreTokenizer(rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}|{_REST}", nfc=True),
}


def text_from_gguf(path: Path) -> TextModel:
    """The text side of a GGUF file. Raises `NestError` (E5024) for kinds that are not known."""
    return _Builder(path.name, read_header(path).metadata).build()


class _Builder:
    def __init__(self, label: str, metadata: Mapping[str, Any]) -> None:
        self.label, self.metadata = label, metadata

    def build(self) -> TextModel:
        kind = self.metadata.get("tokenizer.ggml.model")
        if kind != "gpt2":
            what = f"{quoted(self.label)} has a tokenizer of the kind {quoted(str(kind))}"
            fail("E5024", what, notes=("known kinds: gpt2 (byte-level BPE)",))
        name = self.metadata.get("tokenizer.ggml.pre")
        pre = PRE_TOKENIZERS.get(name) if isinstance(name, str) else None
        if pre is None:
            what = f"{quoted(self.label)} has the unknown pre-tokenizer {quoted(str(name))}"
            fail("E5024", what, notes=(f"known ones: {', '.join(PRE_TOKENIZERS)}",))
        tokens, types = self._tokens()
        return TextModel(
            self._tokenizer(tokens, types, pre),
            self._end_tokens(len(tokens)),
            self._chat(tokens),
            self._prefix(len(tokens), pre),
            frozenset(n for n, kind in enumerate(types) if kind == _CONTROL),
        )

    def _list(self, key: str, kind: type) -> list[Any]:
        value = self.metadata.get(key)
        if not isinstance(value, list) or not all(type(item) is kind for item in value):
            fail("E5024", f"{quoted(self.label)} has no usable {quoted(key)}")
        return value

    def _tokens(self) -> tuple[list[str], list[int]]:
        tokens: list[str] = self._list("tokenizer.ggml.tokens", str)
        types = [_NORMAL] * len(tokens)
        if "tokenizer.ggml.token_type" in self.metadata:
            types = self._list("tokenizer.ggml.token_type", int)
        if len(types) != len(tokens) or len(set(tokens)) != len(tokens):
            fail("E5024", f"{quoted(self.label)} has a vocabulary that contradicts itself")
        return tokens, types

    def _tokenizer(
        self, tokens: list[str], types: list[int], pre: PreTokenizer
    ) -> tokenizers.Tokenizer:
        from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

        vocab = {t: n for n, t in enumerate(tokens) if types[n] != _UNUSED}
        merges = [tuple(m.split(" ")) for m in self._list("tokenizer.ggml.merges", str)]
        if any(len(m) != 2 for m in merges):
            fail("E5024", f"{quoted(self.label)} has a merge that is no pair of tokens")
        try:
            model = models.BPE(vocab, merges, ignore_merges=pre.whole_words)
        except Exception as error:  # the library raises the bare class
            fail("E5024", f"{quoted(self.label)} has merges that do not fit: {str(error)[:200]}")
        tokenizer = Tokenizer(model)
        if pre.nfc:
            tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = _splitter(pre)
        tokenizer.decoder = decoders.ByteLevel()
        added = [n for n, kind in enumerate(types) if kind in (_CONTROL, _USER_DEFINED)]
        tokenizer.add_tokens(
            [
                AddedToken(tokens[n], special=types[n] == _CONTROL, normalized=False)
                for n in added
                if tokens[n]
            ]
        )
        return tokenizer

    def _id(self, name: str, count: int) -> int | None:
        value = self.metadata.get(f"tokenizer.ggml.{name}_token_id")
        if value is None:
            return None
        if type(value) is not int or not 0 <= value < count:
            fail("E5024", f"{quoted(self.label)} names a {name} token outside its vocabulary")
        return value

    def _end_tokens(self, count: int) -> frozenset[int]:
        found = (self._id(name, count) for name in ("eos", "eot", "eom"))
        return frozenset(token for token in found if token is not None)

    def _prefix(self, count: int, pre: PreTokenizer) -> tuple[int, ...]:
        wanted = self.metadata.get("tokenizer.ggml.add_bos_token", pre.begins)
        begin = self._id("bos", count)
        return (begin,) if wanted and begin is not None else ()

    def _chat(self, tokens: list[str]) -> ChatTemplate | None:
        template = self.metadata.get("tokenizer.chat_template")
        if not isinstance(template, str):
            return None
        begin, end = self._id("bos", len(tokens)), self._id("eos", len(tokens))
        return ChatTemplate(
            template,
            tokens[begin] if begin is not None else "",
            tokens[end] if end is not None else "",
        )


def _splitter(pre: PreTokenizer) -> pre_tokenizers.PreTokenizer:
    from tokenizers import Regex, pre_tokenizers

    steps: list[Any] = []
    if pre.digits:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if pre.pattern:
        steps.append(pre_tokenizers.Split(Regex(pre.pattern), "isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pre.pattern))
    return pre_tokenizers.Sequence(steps)
