"""Diagnostics as JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from linnet.diagnostics import Diagnostic, Label, SourceFile, Span, render_json
from linnet.diagnostics.offsets import ByteOffsets


def test_every_field_is_there() -> None:
    file = SourceFile("src/lib.linnet", "module é\nlet x\n")
    found = Diagnostic(
        "E2101", "m", Span(file, 9, 12), "l", (Label(Span(file, 7, 8), "r"),), ("n",), "h"
    )
    result = render_json([found, Diagnostic("W1001", "w", None)])
    assert json.loads(json.dumps(result)) == {
        "version": 1,
        "diagnostics": [
            {
                "code": "W1001",
                "severity": "warning",
                "message": "w",
                "file": None,
                "start": None,
                "end": None,
                "label": "",
                "related": [],
                "notes": [],
                "help": None,
            },
            {
                "code": "E2101",
                "severity": "error",
                "message": "m",
                "file": "src/lib.linnet",
                "start": {"line": 2, "column": 1, "offset": 10},
                "end": {"line": 2, "column": 4, "offset": 13},
                "label": "l",
                "related": [
                    {
                        "file": "src/lib.linnet",
                        "start": {"line": 1, "column": 8, "offset": 7},
                        "end": {"line": 1, "column": 9, "offset": 9},
                        "message": "r",
                    }
                ],
                "notes": ["n"],
                "help": "h",
            },
        ],
        "summary": {"errors": 1, "warnings": 1},
    }


@given(st.text(max_size=50), st.integers(0, 400))
def test_byte_offsets_are_those_of_the_file(text: str, repeat: int) -> None:
    file = SourceFile("f", (text + "é") * repeat)
    offsets = ByteOffsets()
    for offset in {0, len(file.text) // 3, len(file.text)}:
        assert offsets.at(file, offset) == file.byte_offset(offset)
