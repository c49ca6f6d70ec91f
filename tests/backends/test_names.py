"""Names of sources inside Python."""

from __future__ import annotations

import pytest

from linnet.backends.names import record


@pytest.mark.parametrize(
    ("name", "shown"),
    [("Pair", "Pair"), ("class", "class_"), ("None", "None_"), ("_x", "_x"), ("print", "print_")],
)
def test_a_record_takes_every_name(name: str, shown: str) -> None:
    fields = ("def", "def_", "_z", "f_z", "__class__", "x")
    made = record(name, fields)
    assert made.__name__ == shown
    assert len(set(made._fields)) == len(fields) and made._fields[-1] == "x"
    assert tuple(made(*range(6))) == (0, 1, 2, 3, 4, 5)
    assert record(name, fields) is made
