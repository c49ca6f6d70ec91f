"""Every Linnet example in the documentation checks, without a warning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from linnet.api import check_paths
from linnet.cli.app import app
from linnet.diagnostics import SourceFile
from linnet.syntax.formatter import format_module

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```linnet\n(.*?)^```", re.MULTILINE | re.DOTALL)

EXAMPLES = [
    pytest.param(text, id=f"{page.name}:{number}")
    for page in PAGES
    if page.exists()
    for number, text in enumerate(BLOCK.findall(page.read_text()), 1)
]


def test_the_guides_have_examples() -> None:
    assert len(EXAMPLES) > 15


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_checks(text: str, tmp_path: Path) -> None:
    path = tmp_path / "example.linnet"
    path.write_text(text)
    problems = check_paths([path]).diagnostics
    assert [f"{each.code}: {each.message}" for each in problems] == []


def test_the_tours_mistake_reads_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tour = (ROOT / "docs" / "tour.md").read_text()
    first = BLOCK.findall(tour)[0]
    monkeypatch.chdir(tmp_path)
    Path("tour.linnet").write_text(first.replace("weight[o, i]", "weight[i, o]"))
    result = CliRunner().invoke(app, ["check", "tour.linnet"])
    shown = re.findall(r"^```text\n(error.*?)^```", tour, re.MULTILINE | re.DOTALL)[0]
    assert shown in result.output


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_is_formatted(text: str) -> None:
    assert format_module(SourceFile("example.linnet", text))[0] == text
