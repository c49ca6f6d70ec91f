"""Every golden case prints what its expectation file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.diagnostics import CATALOGUE

from .harness import CASES, codes_in, expectations, run_case

# Every code that `check` can report; those after E5001 are about weights and cards.
COVERED = {code for code in CATALOGUE if not code.startswith("E5")} | {"E5001"}


@pytest.mark.parametrize("path", expectations(), ids=lambda path: str(path.relative_to(CASES)))
def test_golden(path: Path) -> None:
    assert run_case(path) == path.read_text(encoding="utf-8")


def test_codes_have_a_case_with_line_and_column() -> None:
    shown = {code for path in expectations() for code in codes_in(path.read_text("utf-8"))}
    assert not COVERED - shown


def test_every_source_has_an_expectation() -> None:
    for source in CASES.glob("*/*"):
        if source.suffix == ".linnet" or (source / "linnet.toml").is_file():
            assert (source.parent / f"{source.stem}.txt").is_file(), source
