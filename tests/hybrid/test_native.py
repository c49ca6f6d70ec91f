"""Every entry of the hybrid package as machine code, against `transformers` as on PyTorch.

Another package of the family is held to the entries it has when `LINNET_HYBRID_PACKAGE` names its
folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from . import scenarios as sc
from .scenarios import Subject
from .test_entries import COMMON, FULL, OTHER, OWN, TOLERANCE

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")


def subject(numerics: str, dtype: str = "f32", folder: Path = OWN) -> Subject:
    return Subject(folder, numerics, dtype=dtype, backend="native")


def test_packed_prompts_and_steps() -> None:
    assert sc.packed_prompts(subject("fast"), (6, 1, 9)) <= 2e-4


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("name", FULL)
def test_f32(name: str, numerics: str) -> None:
    assert FULL[name](subject(numerics)) <= 2e-4


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("name", ["whole", "rows", "packed", "pages"])
def test_bf16(name: str, numerics: str) -> None:
    scenario = FULL[name] if name != "whole" else lambda s: sc.whole_sequences(s, (1, 5, 40))
    assert scenario(subject(numerics, "bf16")) <= TOLERANCE["bf16"]


@pytest.mark.slow
@pytest.mark.skipif(OTHER is None, reason="LINNET_HYBRID_PACKAGE names no package")
@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", COMMON)
def test_another_package(name: str, dtype: str, numerics: str) -> None:
    assert COMMON[name](subject(numerics, dtype, Path(str(OTHER)))) <= TOLERANCE[dtype]
