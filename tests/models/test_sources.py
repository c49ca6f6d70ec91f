"""The models' sources and the library's: they check without a word and are formatted."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.api import check_paths
from linnet.diagnostics import SourceFile
from linnet.syntax.formatter import format_module

ROOT = Path(__file__).parent.parent.parent
PACKAGES = sorted(toml.parent for toml in (ROOT / "models").glob("*/linnet.toml"))
SOURCES = sorted(
    path for home in ("models", "src/linnet/stdlib") for path in (ROOT / home).rglob("*.linnet")
)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_package_checks_without_a_word(package: Path) -> None:
    assert [f"{each.code}: {each.message}" for each in check_paths([package]).diagnostics] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_is_formatted(path: Path) -> None:
    text = path.read_text()
    assert format_module(SourceFile(str(path), text))[0] == text
