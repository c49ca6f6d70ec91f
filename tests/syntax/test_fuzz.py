"""A sample of `tests/fuzz/fuzz_syntax.py`, and its checks over the unmutated sources."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import pytest

from linnet.diagnostics.span import SourceFile
from linnet.syntax import format_module

_PATH = Path(__file__).resolve().parent.parent / "fuzz" / "fuzz_syntax.py"
_spec = importlib.util.spec_from_file_location("fuzz_syntax", _PATH)
assert _spec is not None and _spec.loader is not None
fuzz = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = fuzz
_spec.loader.exec_module(fuzz)


def test_mutations() -> None:
    failures, valid = fuzz.run(1_500, seed=11)
    assert failures == []
    assert valid > 100


@pytest.mark.slow
def test_more_mutations() -> None:
    assert fuzz.run(20_000, seed=12)[0] == []


def test_every_source() -> None:
    """Formatting keeps the tree, is idempotent, and doesn't see white space."""
    rng = random.Random(5)
    read = 0
    for text in fuzz.sources():
        if format_module(SourceFile("t", text))[0] is None:
            continue
        read += 1
        assert fuzz.check(text, 1.0, rng) == (None, True)
    assert read > 0
