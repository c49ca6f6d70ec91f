"""Tokenizers from GGUF metadata and from `tokenizer.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nest_toy import TEMPLATE, TOKENS, write_gguf

from linnet.nest import NestError
from linnet.nest.text import text_from_folder, text_from_gguf
from linnet.nest.text.gguf import PRE_TOKENIZERS

SAMPLES = [
    "hello  world\n\n it's 2024!",
    "naïve 漢字 🙂👩‍👩‍👧 \t x",
    "a<|end|>b<user>c",
    "",
    " ",
    "I'M don't  \r\n  x",
]


@pytest.mark.parametrize("pre", list(PRE_TOKENIZERS))
def test_text_survives(tmp_path: Path, pre: str) -> None:
    model = text_from_gguf(write_gguf(tmp_path / "m.gguf", pre))
    for text in SAMPLES:
        ids = model.encode(text)
        assert model.decode(ids) == text.replace("<|end|>", "")
    assert model.encode("hell") == [TOKENS.index("hell")]
    assert model.encode("<user>") == [TOKENS.index("<user>")]


def pieces(tmp_path: Path, pre: str, text: str) -> list[str]:
    model = text_from_gguf(write_gguf(tmp_path / f"{pre}.gguf", pre))
    splitter = model.tokenizer.pre_tokenizer
    return [text[a:b] for _, (a, b) in splitter.pre_tokenize_str(text)]


def test_splits(tmp_path: Path) -> None:
    assert pieces(tmp_path, "gpt-2", "it's 2024") == ["it", "'s", " 2024"]
    assert pieces(tmp_path, "smollm", "it's 2024") == ["it", "'s", " ", "2", "0", "2", "4"]
    assert pieces(tmp_path, "llama-bpe", "IT'S 2024\n") == ["IT", "'S", " ", "202", "4", "\n"]
    assert pieces(tmp_path, "qwen2", "it's 20\n\n x") == ["it", "'s", " ", "2", "0", "\n\n", " x"]


def test_chat_and_end_tokens(tmp_path: Path) -> None:
    model = text_from_gguf(write_gguf(tmp_path / "m.gguf"))
    ids = model.encode_chat([{"role": "user", "content": "hell"}])
    assert ids[0] == 1 and TOKENS.index("hell") in ids and ids.count(1) == 2
    assert model.end_tokens == {0} and model.special == {0, 1}
    assert model.decode(ids) == "user\nhell\nassistant\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"pre": "mystery"},
        {"pre": None},
        {"model": "llama"},
        {"tokens": ["a", *TOKENS[:-1]]},  # "a" twice
        {"types": [1]},
        {"merges": ["h e", "q"]},
        {"merges": ["h e", "zz yy"]},
        {"eos": 9999},
    ],
)
def test_what_is_not_known_is_an_error(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(NestError) as caught:
        text_from_gguf(write_gguf(tmp_path / "m.gguf", **changes))
    assert caught.value.diagnostics[0].code == "E5024"


def folder_of(tmp_path: Path, **files: Any) -> Path:
    from tokenizers import Tokenizer

    text: Tokenizer = text_from_gguf(write_gguf(tmp_path / "m.gguf", "qwen2")).tokenizer
    folder = tmp_path / "repo"
    folder.mkdir()
    text.save(str(folder / "tokenizer.json"))
    for name, value in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def test_a_repository_folder(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        tokenizer_config__json={"eos_token": "<|end|>", "chat_template": TEMPLATE},
        generation_config__json={"eos_token_id": [0, 5]},
    )
    model = text_from_folder(folder)
    assert model.end_tokens == {0, 5} and model.special == {0, 1}
    ids = model.encode_chat([{"role": "user", "content": "hé 🙂"}])
    assert model.decode(ids) == "user\nhé 🙂\nassistant\n"
    (folder / "chat_template.jinja").write_text("{{ eos_token }}!")
    assert text_from_folder(folder).encode_chat([]) == [0, TOKENS.index("!")]
    (folder / "generation_config.json").unlink()
    assert text_from_folder(folder).end_tokens == {0}


def test_broken_repository_files(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert text_from_folder(folder).chat is None
    with pytest.raises(NestError, match="no chat template"):
        text_from_folder(folder).encode_chat([])
    (folder / "generation_config.json").write_text("[" * 90_000)
    with pytest.raises(NestError, match="nested too deeply"):
        text_from_folder(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(NestError, match="cannot be used"):
        text_from_folder(folder)
    with pytest.raises(NestError, match=r"has no tokenizer\.json"):
        text_from_folder(tmp_path)


def test_prompts_that_are_no_text(tmp_path: Path) -> None:
    model = text_from_gguf(write_gguf(tmp_path / "m.gguf"))
    with pytest.raises(NestError):
        model.encode("\ud800")
    with pytest.raises(NestError):
        model.encode("x" * (5 << 20))
