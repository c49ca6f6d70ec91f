"""A sample of `tests/fuzz/fuzz_check.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).resolve().parent.parent / "fuzz" / "fuzz_check.py"
_spec = importlib.util.spec_from_file_location("fuzz_check", _PATH)
assert _spec is not None and _spec.loader is not None
fuzz = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = fuzz
_spec.loader.exec_module(fuzz)


def test_mutations() -> None:
    assert fuzz.run(120, seed=21) == []


@pytest.mark.slow
def test_more_mutations() -> None:
    assert fuzz.run(3_000, seed=22) == []
