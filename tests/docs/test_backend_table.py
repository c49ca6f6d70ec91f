"""The table of backends in the docs is the one that the emitters use."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("jax")
pytest.importorskip("onnxruntime")

from .backend_table import PAGE, generated, ops, parts


def test_the_page_is_current() -> None:
    _, written, _ = parts(PAGE.read_text(encoding="utf-8"))
    assert written == generated(), "run `python tests/docs/backend_table.py`"


def test_every_op_of_the_library_is_in_it() -> None:
    text = generated()
    for op in ops():
        assert f"`{op.removeprefix('std.')}`" in text
