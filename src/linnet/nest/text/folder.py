"""Tokenizer, end tokens and chat template from the files of a Hugging Face repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from linnet.nest.errors import fail, quoted
from linnet.nest.text.chat import TEMPLATE_LIMIT, ChatTemplate
from linnet.nest.text.tokenizer import TextModel
from linnet.packages.files import FileError, read_bytes
from linnet.weights.strict_json import JsonProblem, parse_json

TEXT_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "generation_config.json",
)
"""What is read, and fetched beside the weights; all but the first may be missing."""

_TOKENIZER_LIMIT = 64 << 20
_CONFIG_LIMIT = 16 << 20


def text_from_folder(folder: Path) -> TextModel:
    """The text side of a folder with `tokenizer.json`. Raises `NestError` (E5024)."""
    from tokenizers import Tokenizer

    data = _read(folder / "tokenizer.json", _TOKENIZER_LIMIT)
    if data is None:
        fail("E5024", f"{quoted(str(folder))} has no tokenizer.json, so it takes no text")
    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises the bare class
        fail("E5024", f"tokenizer.json cannot be used: {str(error)[:200]}")
    config = _json(folder / "tokenizer_config.json")
    begin, end = _token(config, "bos_token"), _token(config, "eos_token")
    added = tokenizer.get_added_tokens_decoder()
    special = frozenset(n for n, token in added.items() if token.special)
    prefix: tuple[int, ...] = ()
    begin_id = tokenizer.token_to_id(begin) if begin else None
    if config.get("add_bos_token") is True and begin_id is not None:
        prefix = (begin_id,)
    ends = _end_tokens(folder, tokenizer.token_to_id(end) if end else None)
    return TextModel(tokenizer, ends, _chat(folder, config, begin, end), prefix, special)


def _read(path: Path, limit: int) -> bytes | None:
    if not path.exists():
        return None
    try:
        return read_bytes(path, limit)
    except FileError as problem:
        fail("E5024", f"{quoted(path.name)} {problem.reason}")


def _json(path: Path) -> dict[str, Any]:
    data = _read(path, _CONFIG_LIMIT)
    if data is None:
        return {}
    try:
        value = parse_json(data, _CONFIG_LIMIT)
    except JsonProblem as problem:
        fail("E5024", f"{quoted(path.name)} {problem}")
    if not isinstance(value, dict):
        fail("E5024", f"{quoted(path.name)} is no JSON object")
    return value


def _token(config: dict[str, Any], key: str) -> str:
    value = config.get(key)
    if isinstance(value, dict):  # an added token written out
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _end_tokens(folder: Path, fallback: int | None) -> frozenset[int]:
    value = _json(folder / "generation_config.json").get("eos_token_id", fallback)
    values = value if isinstance(value, list) else [value]
    return frozenset(v for v in values if type(v) is int)


def _chat(folder: Path, config: dict[str, Any], begin: str, end: str) -> ChatTemplate | None:
    data = _read(folder / "chat_template.jinja", TEMPLATE_LIMIT)
    template: Any = config.get("chat_template")
    if data is not None:
        template = data.decode("utf-8", "replace")
    elif isinstance(template, list):  # several named ones
        named = {t.get("name"): t.get("template") for t in template if isinstance(t, dict)}
        template = named.get("default")
    return ChatTemplate(template, begin, end) if isinstance(template, str) else None
