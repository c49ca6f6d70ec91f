"""What the language reference says, rule by rule: a module that obeys it or one that doesn't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linnet.api import check_paths

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
