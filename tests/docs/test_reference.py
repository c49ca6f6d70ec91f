"""What the language reference says, rule by rule: a module that obeys it or one that doesn't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linnet.api import check_paths
from linnet.diagnostics.catalogue import CATALOGUE

SECTION = r"^=== ([^:\n]+)(?:: ([EW\d ]+))?\n(.*?)(?=^===|^---|\Z)"
RULES = re.findall(
    SECTION, (Path(__file__).parent / "rules.txt").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize(("rule", "codes", "text"), RULES, ids=[rule for rule, _, _ in RULES])
def test_rule(rule: str, codes: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "rule.linnet"
    path.write_text(f"module rule\n\n{text}\n")
    found = check_paths([path]).diagnostics
    assert " ".join(each.code for each in found) == codes, [each.message for each in found]


def check(text: str, folder: Path) -> list[str]:
    path = folder / "limits.linnet"
    path.write_text(f"module limits\n\n{text}\n")
    return [each.code for each in check_paths([path]).diagnostics]


@pytest.mark.parametrize(("count", "sound"), [(90, True), (110, False), (10_000, False)])
def test_nesting_is_limited(count: int, sound: bool, tmp_path: Path) -> None:
    text = f"pub fn f(x: i32) -> i32 {{ return {'(' * count}x{')' * count} }}"
    assert (check(text, tmp_path) == []) is sound


@pytest.mark.parametrize(("count", "sound"), [(140, True), (160, False), (10_000, False)])
def test_chains_are_limited(count: int, sound: bool, tmp_path: Path) -> None:
    text = f"pub fn f(x: i32) -> i32 {{ return {' + '.join(['x'] * count)} }}"
    assert (check(text, tmp_path) == []) is sound


@pytest.mark.parametrize(("count", "sound"), [(64, True), (65, False)])
def test_rank_is_limited(count: int, sound: bool, tmp_path: Path) -> None:
    type_ = f"Tensor[{', '.join(['2'] * count)}; f32]"
    assert (check(f"pub fn f(x: {type_}) -> {type_} {{ return x }}", tmp_path) == []) is sound


def test_the_table_of_codes_is_the_catalogues() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "language.md").read_text()
    rows = re.findall(r"^\| ([EW]\d{4}) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(info.code, info.meaning) for info in CATALOGUE.values()]
