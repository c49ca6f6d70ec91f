"""Bindings files and templates against manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.weights import Manifest, ParamSpec, WeightError, read_bindings


def manifest(layers: int = 2) -> Manifest:
    paths = ["embedding.weight"]
    for i in range(layers):
        paths += [f"layers.{i}.up.weight", f"layers.{i}.down.weight"]
    arrays = {"layers": layers}
    return Manifest(tuple(ParamSpec(p, (2,), "f32") for p in paths), arrays=arrays)


TEMPLATES = {
    "embedding.weight": "tok",
    "layers.{i}.up.weight": "model.{i}.up",
    "layers.{i}.down.weight": "model.{i}.down",
}


def test_templates() -> None:
    bound, problems = read_bindings(TEMPLATES).expand(manifest())
    assert not problems
    assert bound == {
        "embedding.weight": "tok",
        "layers.0.up.weight": "model.0.up",
        "layers.0.down.weight": "model.0.down",
        "layers.1.up.weight": "model.1.up",
        "layers.1.down.weight": "model.1.down",
    }


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_elements_past_the_end_are_left_out(layers: int) -> None:
    lines = {"embedding.weight": "tok"}
    for i in range(36):
        lines[f"layers.{i}.up.weight"] = f"u{i}"
        lines[f"layers.{i}.down.weight"] = f"d{i}"
    for entries in (lines, TEMPLATES):
        bound, problems = read_bindings(entries).expand(manifest(layers))
        assert not problems and len(bound) == 1 + 2 * layers


def test_nested_templates() -> None:
    paths = [f"g.{i}.l.{j}.w" for i in range(2) for j in range(3)]
    arrays = {"g": 2, "g.0.l": 3, "g.1.l": 3}
    nested = Manifest(tuple(ParamSpec(p, (2,), "f32") for p in paths), arrays=arrays)
    bound, problems = read_bindings({"g.{i}.l.{j}.w": "b{j}.{i}", "g.1.l.{k}.w": "x"}).expand(
        Manifest(nested.params[:3], arrays={"g": 1, "g.0.l": 3})
    )
    assert bound == {"g.0.l.0.w": "b0.0", "g.0.l.1.w": "b1.0", "g.0.l.2.w": "b2.0"}
    assert [d.code for d in problems] == []
    bound, problems = read_bindings({"g.{i}.l.{i}.w": "d{i}"}).expand(nested)
    assert bound == {"g.0.l.0.w": "d0", "g.1.l.1.w": "d1"}


def test_a_line_wins_over_a_template() -> None:
    bound, problems = read_bindings({**TEMPLATES, "layers.0.up.weight": "first"}).expand(manifest())
    assert bound["layers.0.up.weight"] == "first" and bound["layers.1.up.weight"] == "model.1.up"
    assert not problems


def test_two_templates_for_one_path() -> None:
    _, problems = read_bindings({**TEMPLATES, "layers.{j}.up.weight": "x"}).expand(manifest())
    assert {d.code for d in problems} == {"E5005"}


def test_unknown_paths_suggest() -> None:
    lines = {"embeding.weight": "x", "layers.{i}.upp.weight": "y.{i}", "layers.0.nope": "z"}
    _, problems = read_bindings(lines).expand(manifest())
    assert [d.code for d in problems] == ["E5006"] * 3
    assert problems[0].help == "did you mean `embedding.weight`?"
    assert problems[1].help is None or "layers.{i}.up.weight" in (problems[2].help or "")


@pytest.mark.parametrize(
    "entries",
    [
        {"a.b c": "x"}, {"": "x"}, {"a..b": "x"}, {"a": ""}, {"a.{}": "x"}, {"a.{ij}.b": "x"},
        {"a.{i}": "x{j}"}, {"a": 3}, {"a": None}, {"a.x{i}": "x"}, {"a.01.b": "x"},
        {"a" * 2000: "x"}, {"a.９.b": "x"}, {"a.{i}": "x" * 2000},
    ],
)  # fmt: skip
def test_malformed_lines(entries: dict[str, str]) -> None:
    with pytest.raises(WeightError) as caught:
        read_bindings(entries)
    assert caught.value.diagnostics[0].code == "E5005"


@pytest.mark.parametrize(
    "text", ["", "[]", "1", '{"a": "b", "a": "c"}', '{"a": {"b": "c"}}', "[" * 90_000, "\xff"]
)
def test_malformed_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bindings.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(WeightError) as caught:
        read_bindings(path)
    assert caught.value.diagnostics[0].code == "E5005"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WeightError) as caught:
        read_bindings(tmp_path / "none.json")
    assert caught.value.diagnostics[0].code == "E5002"


def test_bindings_of_a_wrong_kind() -> None:
    with pytest.raises(WeightError, match=r"E5005.*a file or a mapping, not a list"):
        read_bindings([1])  # type: ignore[arg-type]
