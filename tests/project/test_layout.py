"""What is public, and what every file keeps to."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import linnet
from linnet.packages import models_root, stdlib_root

SOURCE = Path(linnet.__file__).parent
MAX_LINES = 600
# One declaration, or one row, after the other.
MAY_BE_LONG = {"syntax/tree.py", "ir/table.py: _rows"}
MAX_FUNCTION = 70


def test_the_public_names() -> None:
    assert linnet.__all__ == ["CompileError", "Diagnostic", "__version__", "load_program"]
    for name in linnet.__all__:
        assert getattr(linnet, name) is not None


def test_the_library_and_the_cards_are_found() -> None:
    assert list(stdlib_root().rglob("*.linnet"))
    assert models_root().is_dir()


def test_files_and_functions_stay_small() -> None:
    large = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(SOURCE).as_posix()
        if text.count("\n") > MAX_LINES and name not in MAY_BE_LONG:
            large.append(f"{name}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION and f"{name}: {node.name}" not in MAY_BE_LONG:
                    large.append(f"{name}: {node.name} {length} lines")
    assert not large, "\n".join(large)


def test_no_unfinished_marks() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b")
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in SOURCE.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if marks.search(line)
    ]
    assert not found
