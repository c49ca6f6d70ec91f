"""The hybrid package on ONNX Runtime against `transformers`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from . import scenarios as sc
from .scenarios import Subject
from .test_entries import COMMON, FULL, OTHER, OWN, QUICK, TOLERANCE

pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="no ONNX Runtime")
ALL = {**FULL, **QUICK}


def test_a_prompt_and_steps() -> None:
    subject = Subject(OWN, "fast", backend="onnx_model")
    assert sc.chunks_then_steps(subject, (), 7, 1) <= TOLERANCE["f32"]


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", list(ALL))
def test_entries(name: str, dtype: str, numerics: str) -> None:
    subject = Subject(OWN, numerics, dtype=dtype, backend="onnx_model")
    assert ALL[name](subject) <= TOLERANCE[dtype]


@pytest.mark.slow
@pytest.mark.skipif(OTHER is None, reason="LINNET_HYBRID_PACKAGE names no package")
@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", ["chunks", "rows"])
def test_another_package(name: str, dtype: str, numerics: str) -> None:
    subject = Subject(Path(str(OTHER)), numerics, dtype=dtype, backend="onnx_model")
    scenario = QUICK["chunks"] if name == "chunks" else COMMON[name]
    assert scenario(subject) <= TOLERANCE[dtype]
