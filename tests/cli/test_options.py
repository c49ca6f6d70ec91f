"""Options and arguments that several commands take."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from linnet.cli.options import SOURCE, WEIGHT_FORMATS, parse_bindings


def test_integers_and_dtypes() -> None:
    assert parse_bindings(["H=64", "T=bf16", "MaxSeq=1_024"]) == {
        "H": 64,
        "T": "bf16",
        "MaxSeq": 1024,
    }


def test_lists_of_sizes() -> None:
    assert parse_bindings(["S=2,3", "One=1_024,", "None=,"]) == {
        "S": (2, 3),
        "One": (1024,),
        "None": (),
    }


@pytest.mark.parametrize(
    "text",
    [
        "H", "H=", "=3", "H=3.5", "H=a b", "1=2", "H=0x10", "H=" + "9" * 30, "S=2,,3", "S=,2",
        "S=2,x", "S=,,",
    ],
)  # fmt: skip
def test_another_form_is_misuse(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_bindings([text])


def test_one_name_twice_is_misuse() -> None:
    with pytest.raises(click.BadParameter, match="twice"):
        parse_bindings(["H=1", "H=2"])


def test_a_source_is_a_path_or_an_installed_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = SOURCE.convert("qwen3-8b", None, None)
    assert (card / "nest.toml").is_file()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qwen3-8b").mkdir()  # what is there comes first
    assert SOURCE.convert("qwen3-8b", None, None) == Path("qwen3-8b")
    for name in ("qwen3", "../qwen3-8b", "-"):
        with pytest.raises(click.BadParameter):
            SOURCE.convert(name, None, None)


def test_formats_are_those_of_the_native_backend() -> None:
    from linnet.native.runtime.packing import FORMATS

    assert set(WEIGHT_FORMATS) == set(FORMATS)
