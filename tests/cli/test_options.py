"""`--bind G=V`."""

from __future__ import annotations

import click
import pytest

from linnet.cli.options import parse_bindings


def test_integers_and_dtypes() -> None:
    assert parse_bindings(["H=64", "T=bf16", "MaxSeq=1_024"]) == {
        "H": 64,
        "T": "bf16",
        "MaxSeq": 1024,
    }


@pytest.mark.parametrize(
    "text", ["H", "H=", "=3", "H=3.5", "H=a b", "1=2", "H=0x10", "H=" + "9" * 30]
)
def test_another_form_is_misuse(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_bindings([text])


def test_one_name_twice_is_misuse() -> None:
    with pytest.raises(click.BadParameter, match="twice"):
        parse_bindings(["H=1", "H=2"])
