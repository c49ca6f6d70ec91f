"""What the benchmarks take from the package is there: nothing else runs them between releases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "bench"


def taken() -> Iterator[tuple[str, str, str]]:
    """A benchmark, a module of ours, and a name that it imports from it."""
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("linnet"):
                for alias in node.names:
                    yield path.relative_to(FOLDER).as_posix(), str(node.module), alias.name


def test_the_names_they_import() -> None:
    found = list(taken())
    for package in ("torch", "jax", "onnx_ir", "onnxruntime"):
        pytest.importorskip(package)
    assert len(found) > 20
    missing = [t for t in found if not _has(*t[1:])]
    assert not missing


def _has(module: str, name: str) -> bool:
    if hasattr(import_module(module), name):
        return True
    try:
        import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True
