"""`linnet inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linnet.cli.app import main

Capture = pytest.CaptureFixture[str]

SOURCE = """\
module toy

/// Scales.
pub block Scale<N: Dim, T: Float = f32> {
    param weight: Tensor[N; T]
    param bias: Tensor[N; T] = none
    state count: i64

    fn forward(x: Tensor[N; T]) -> Tensor[N; T] {
        return x * weight
    }
}

pub block Stack<N: Dim, Layers: Dim> {
    sub layers: [Scale<2 * N, bf16>; Layers]
    sub last: Scale<N> = none
}
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "toy.linnet"
    path.write_text(SOURCE)
    return str(path)


def test_tokens(source: str, capsys: Capture) -> None:
    assert main(["inspect", "--tokens", source]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["     1:1 module", "     1:8 name toy", "     3:1 comment /// Scales."]
    assert lines[-1].endswith(" eof")


def test_tokens_as_json(source: str, capsys: Capture) -> None:
    assert main(["inspect", "--tokens", "--json", source]) == 0
    tokens = json.loads(capsys.readouterr().out)
    assert tokens[1] == {"kind": "name", "text": "toy", "start": 7, "end": 10, "comments": []}
    assert tokens[2]["comments"] == ["/// Scales."]


def test_tree(source: str, capsys: Capture) -> None:
    assert main(["inspect", "--ast", source]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Module")
    assert "BlockDecl" in out


def test_tree_as_json(source: str, capsys: Capture) -> None:
    assert main(["inspect", "--ast", "--json", source]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["node"] == "Module"
    assert tree["name"]["parts"][0] == {"node": "Name", "text": "toy", "span": [7, 10]}
    assert [item["name"]["text"] for item in tree["items"]] == ["Scale", "Stack"]


def test_a_broken_file_shows_what_was_read_and_fails(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.linnet"
    path.write_text("module x\n\nconst A = \n\nconst B = 2\n")
    assert main(["inspect", "--ast", str(path)]) == 1
    shown = capsys.readouterr()
    assert "Const" in shown.out
    assert "E1101" in shown.err


def test_a_file_that_is_no_text_fails(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.linnet"
    path.write_bytes(b"module x\xff\n")
    assert main(["inspect", "--tokens", str(path)]) == 1
    assert "E1001" in capsys.readouterr().err
    assert main(["inspect", "--ast", str(tmp_path)]) == 1
    assert "is a folder" in capsys.readouterr().err


def test_parameters(source: str, capsys: Capture) -> None:
    assert main(["inspect", "--parameters", source]) == 0
    assert capsys.readouterr().out == (
        "block Scale<N: Dim, T: Float = f32>\n"
        "  param  weight  Tensor[N; T]\n"
        "  param  bias    Tensor[N; T]  (optional)\n"
        "  state  count   i64\n"
        "\n"
        "block Stack<N: Dim, Layers: Dim>\n"
        "  param  layers.{i}.weight  Tensor[2 * N; bf16]\n"
        "  param  layers.{i}.bias    Tensor[2 * N; bf16]  (optional)\n"
        "  state  layers.{i}.count   i64\n"
        "  param  last.weight        Tensor[N; f32]  (optional)\n"
        "  param  last.bias          Tensor[N; f32]  (optional)\n"
        "  state  last.count         i64  (optional)\n"
    )


def test_parameters_as_json(source: str, capsys: Capture) -> None:
    assert main(["inspect", "--parameters", "--json", source]) == 0
    blocks = json.loads(capsys.readouterr().out)
    assert [block["block"] for block in blocks] == ["toy::Scale", "toy::Stack"]
    assert blocks[1]["members"][1] == {
        "kind": "param",
        "path": "layers.{i}.bias",
        "type": "Tensor[2 * N; bf16]",
        "optional": True,
    }
