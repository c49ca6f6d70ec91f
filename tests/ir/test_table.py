"""The table of operations is complete and says what a reader needs."""

from __future__ import annotations

from typing import get_args

from linnet.ir import OPS
from linnet.ir.table import AttrRole


def test_rows() -> None:
    for name, row in OPS.items():
        assert row.name == name
        assert row.doc.endswith("."), name
        assert set(row.attrs.values()) <= set(get_args(AttrRole)), name
        assert row.regions >= -1
        assert (row.group == "control") == bool(row.regions), name


def test_only_state_and_calls_have_effects() -> None:
    assert {n for n, r in OPS.items() if r.effects} == {"state_read", "state_write", "call"}
