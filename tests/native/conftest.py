"""What tests of the native backend share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from linnet.native.toolchain.compiler import find_toolchain


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A cache folder of the test's own, and the compiler looked for anew."""
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "cache"))
    find_toolchain.cache_clear()
    yield
    find_toolchain.cache_clear()
