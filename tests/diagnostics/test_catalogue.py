"""The table of codes, against what the source reports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import linnet
from linnet.diagnostics import CATALOGUE

SOURCE = Path(linnet.__file__).parent


def reported() -> dict[str, str]:
    """Every code that stands as a string in the source, with a file that holds it."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        if path.name == "catalogue.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and re.fullmatch(r"[EW]\d{4}", str(node.value)):
                found[str(node.value)] = path.name
    return found


def test_every_reported_code_is_in_the_table() -> None:
    unknown = {code: where for code, where in reported().items() if code not in CATALOGUE}
    assert not unknown


def test_every_code_has_a_meaning_and_an_area() -> None:
    for code, info in CATALOGUE.items():
        assert code == info.code
        assert info.meaning
        assert info.area
