"""The hybrid package on JAX, as source and through StableHLO, against `transformers`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from . import scenarios as sc
from .scenarios import Subject
from .test_entries import COMMON, FULL, OTHER, OWN, QUICK, TOLERANCE

pytestmark = pytest.mark.skipif(find_spec("jaxlib") is None, reason="JAX is not installed")
BACKENDS = ("jax_source", "jax_model")


def test_a_prompt_and_steps() -> None:
    subject = Subject(OWN, "fast", backend="jax_source")
    assert sc.chunks_then_steps(subject, (), 7, 1) <= TOLERANCE["f32"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [*QUICK, *(n for n in FULL if n not in QUICK)])
def test_f32(name: str, backend: str) -> None:
    subject = Subject(OWN, "fast", backend=backend)
    assert {**FULL, **QUICK}[name](subject) <= TOLERANCE["f32"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["whole", "chunks"])
def test_exact(name: str, backend: str) -> None:
    assert QUICK[name](Subject(OWN, "exact", backend=backend)) <= TOLERANCE["f32"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["rows", "packed", "pages"])
def test_bf16(name: str, backend: str) -> None:
    subject = Subject(OWN, "fast", dtype="bf16", backend=backend)
    assert {**FULL, **QUICK}[name](subject) <= TOLERANCE["bf16"]


@pytest.mark.slow
@pytest.mark.skipif(OTHER is None, reason="LINNET_HYBRID_PACKAGE names no package")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", ["chunks", "rows"])
def test_another_package(name: str, dtype: str, backend: str) -> None:
    subject = Subject(Path(str(OTHER)), "fast", dtype=dtype, backend=backend)
    scenario = QUICK["chunks"] if name == "chunks" else COMMON[name]
    assert scenario(subject) <= TOLERANCE[dtype]
