"""The library as text: it checks, it is documented, and the overview page names all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from linnet.api import Checked
from linnet.diagnostics import SourceFile
from linnet.syntax import parse_module, tree

from .std_support import DOCS, STDLIB

FILES = sorted(STDLIB.rglob("*.linnet"))

NEEDED = {
    "linear": "linear Linear",
    "embedding": "embedding Embedding",
    "norm": "rms_norm layer_norm RmsNorm",
    "activations": "relu sigmoid silu gelu gelu_erf softplus",
    "softmax": "softmax",
    "mlp": "SwiGlu",
    "rope": "rope rope_rows",
    "attention": "causal_mask attention grouped_attention attention_rows grouped_attention_rows "
    "paged_attention paged_prefill_attention sink_attention",
    "cache": "write_at write_span write_rows write_slots write_tokens page_slots",
    "decoding": "argmax",
    "random": "split fold_in bits uniform normal categorical",
    "parallel": "all_reduce shared all_gather",
    "loss": "cross_entropy token_log_probs linear_cross_entropy linear_token_log_probs "
    "split_cross_entropy split_token_log_probs log_softmax entropy",
    "recurrent": "causal_conv gated_delta_rule gated_delta_step",
    "moe": "linear_experts linear_experts_shared combine_experts",
}


def public(module: tree.Module) -> Iterator[tuple[str, str | None]]:
    for item in module.items:
        if item.public:
            yield item.name.text, item.doc
        if isinstance(item, tree.BlockDecl):
            for method in item.items:
                if method.public:
                    yield f"{item.name.text}.{method.name.text}", method.doc


def parsed(stem: str) -> tree.Module:
    (path,) = (file for file in FILES if file.stem == stem)
    return parse_module(SourceFile(str(path), path.read_text()))[0]


def test_checks_without_a_word(checked: Checked) -> None:
    assert [str(each) for each in checked.diagnostics] == []


@pytest.mark.parametrize("stem", [file.stem for file in FILES])
def test_public_items_are_documented(stem: str) -> None:
    assert [name for name, doc in public(parsed(stem)) if not doc] == []


@pytest.mark.parametrize("stem", sorted(NEEDED))
def test_module_has_its_items(stem: str) -> None:
    names = {name for name, _ in public(parsed(stem))}
    assert set(NEEDED[stem].split()) <= names


@pytest.mark.parametrize("stem", [file.stem for file in FILES])
def test_overview_names_every_item(stem: str) -> None:
    words = set(re.findall(r"\w+", (DOCS / "stdlib.md").read_text()))
    assert [name for name, _ in public(parsed(stem)) if "." not in name and name not in words] == []
