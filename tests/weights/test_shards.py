"""Folders of shards: with an index, without one, and indexes that lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from linnet.weights import WeightError, open_weights

INDEX = "model.safetensors.index.json"


def folder_of(tmp_path: Path, index: Any = None) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    safetensors.numpy.save_file({"a": np.ones(2, np.float32)}, folder / "m1.safetensors")
    parts: dict[str, Any] = {"b": np.zeros(3, np.float32), "c": np.arange(2)}
    safetensors.numpy.save_file(parts, folder / "m2.safetensors")
    if index is not None:
        text = index if isinstance(index, str) else json.dumps({"weight_map": index})
        (folder / INDEX).write_text(text)
    return folder


def code_of(folder: Path, part: str = "") -> str:
    with pytest.raises(WeightError) as caught:
        open_weights(folder)
    assert part in str(caught.value)
    return caught.value.diagnostics[0].code


GOOD = {"a": "m1.safetensors", "b": "m2.safetensors", "c": "m2.safetensors"}


@pytest.mark.parametrize("index", [None, GOOD])
def test_reads_all_shards(tmp_path: Path, index: Any) -> None:
    with open_weights(folder_of(tmp_path, index)) as weights:
        assert set(weights.names()) == {"a", "b", "c"}
        assert weights.read("c").tolist() == [0, 1]
        assert weights.read_torch("a").tolist() == [1.0, 1.0]


def test_an_index_chooses(tmp_path: Path) -> None:
    with open_weights(folder_of(tmp_path, {"a": "m1.safetensors"})) as weights:
        assert weights.names() == ["a"]


def test_lists_of_files(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    with open_weights([folder / "m1.safetensors", folder / "m2.safetensors"]) as weights:
        assert set(weights.names()) == {"a", "b", "c"}
    with pytest.raises(WeightError):
        open_weights([])
    with pytest.raises(WeightError):
        open_weights([folder / "m1.safetensors", folder / "m1.safetensors"])


@pytest.mark.parametrize(
    "name",
    ["../m1.safetensors", "/etc/passwd", "sub/m1.safetensors", "..", "", "a\\b.safetensors",
     "C:m.safetensors", "m\n.safetensors", "\0.safetensors", "m.bin"],
)  # fmt: skip
def test_paths_in_an_index_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    safetensors.numpy.save_file({"a": np.ones(2)}, tmp_path / "m1.safetensors")
    assert code_of(folder_of(tmp_path, {"a": name})) == "E5004"


def test_missing_and_wrong_shards_are_all_told(tmp_path: Path) -> None:
    index = {"a": "m2.safetensors", "b": "m1.safetensors", "c": "m2.safetensors"}
    with pytest.raises(WeightError) as caught:
        open_weights(folder_of(tmp_path, index))
    assert [d.code for d in caught.value.diagnostics] == ["E5004", "E5004"]
    assert "it is in `m1.safetensors`" in caught.value.diagnostics[0].message


def test_a_missing_shard(tmp_path: Path) -> None:
    assert code_of(folder_of(tmp_path, {"a": "m3.safetensors"}), "m3.safetensors") == "E5004"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', "[" * 90_000,
             '{"weight_map": {"a": "m1.safetensors", "a": "m2.safetensors"}}'],
)  # fmt: skip
def test_broken_indexes(tmp_path: Path, text: str) -> None:
    assert code_of(folder_of(tmp_path, text)) == "E5004"


def test_links_out_of_the_folder(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"x": np.ones(2)}, tmp_path / "secret.safetensors")
    folder = folder_of(tmp_path, {"x": "m9.safetensors"})
    (folder / "m9.safetensors").symlink_to(tmp_path / "secret.safetensors")
    assert code_of(folder, "leads out") == "E5004"
    (folder / INDEX).unlink()
    assert code_of(folder, "leads out") == "E5004"


def test_the_hub_cache_is_made_of_links(tmp_path: Path) -> None:
    blobs = tmp_path / "models--o--n" / "blobs"
    snapshot = tmp_path / "models--o--n" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    safetensors.numpy.save_file({"x": np.ones(2)}, blobs / "0f")
    (snapshot / "model.safetensors").symlink_to("../../blobs/0f")
    with open_weights(snapshot) as weights:
        assert weights.names() == ["x"]


def test_two_shards_with_one_tensor(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    safetensors.numpy.save_file({"a": np.ones(2)}, folder / "m3.safetensors")
    assert code_of(folder, "two files") == "E5004"


def test_a_broken_shard_and_a_folder_of_pickles(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "m2.safetensors").write_bytes(b"\1")
    assert code_of(folder) == "E5003"
    pickles = tmp_path / "p"
    pickles.mkdir()
    (pickles / "pytorch_model.bin").write_bytes(b"x")
    assert code_of(pickles, "pickles") == "E5002"
