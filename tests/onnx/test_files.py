"""Exported files appear whole or not at all, and never in place of what they are made from."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from safetensors.numpy import save_file

from linnet.ir import Program
from linnet.onnx import ExportError, export_model

from .support import checked

TEXT = """
module m
pub block Model<H: Dim> {
    param w: Tensor[H; f32]
    pub entry run(x: Tensor[H; f32]) -> Tensor[H; f32] { return x * w }
}
"""
H = 128  # 512 bytes: large enough to lie beside the model


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return checked(tmp_path, TEXT)


def export(program: Any, path: Any, count: int = H, **options: Any) -> None:
    given = {"w": np.full(count, 3, np.float32)}
    export_model(program, path, **{"generics": {"H": count}, "weights": given, **options})


def result(path: Path, count: int = H) -> float:
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.ones(count, np.float32)})[0][0])


@pytest.mark.parametrize("external", [False, True])
def test_a_full_disk_leaves_what_was_there(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external: bool
) -> None:
    path = tmp_path / "out" / "m.onnx"
    path.parent.mkdir()
    export(program, path, external_data=external)
    names = sorted(path.parent.iterdir())

    def full(_model: Any, place: Path, **options: Any) -> None:
        for name in (place.name, options["external_data"] or place.name):
            place.with_name(name).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", str(place))

    monkeypatch.setattr(ir, "save", full)
    with pytest.raises(ExportError, match=r"m\.onnx` cannot be written: No space left on device$"):
        export(program, path, external_data=external)
    assert sorted(path.parent.iterdir()) == names
    assert result(path) == 3.0


def test_external_data_takes_no_other_file(program: Program, tmp_path: Path) -> None:
    kept, data = tmp_path / "kept", tmp_path / "m.onnx.data"
    kept.write_bytes(b"precious")
    data.symlink_to(kept)
    export(program, tmp_path / "m.onnx", 2, external_data=True)  # too small to lie beside it
    assert data.is_symlink() and result(tmp_path / "m.onnx", 2) == 3.0
    export(program, tmp_path / "m.onnx", external_data=True)
    assert not data.is_symlink() and data.stat().st_size == 4 * H
    assert kept.read_bytes() == b"precious" and result(tmp_path / "m.onnx") == 3.0


@pytest.mark.parametrize("name", ["w.safetensors", "m.onnx.data"])
@pytest.mark.parametrize("folder", [False, True])
def test_what_the_weights_are_read_from_stays(
    program: Program, tmp_path: Path, name: str, folder: bool
) -> None:
    home = tmp_path / "weights"
    home.mkdir()
    weights = home / "w.safetensors"
    save_file({"w": np.full(H, 3, np.float32)}, weights)
    if name == "m.onnx.data":
        (home / name).hardlink_to(weights)
    before = weights.read_bytes()
    path = home / name.removesuffix(".data")
    with pytest.raises(ExportError, match="is a file that models are read from"):
        export(program, path, weights=home if folder else str(weights), external_data=True)
    assert weights.read_bytes() == before
    with pytest.raises(ExportError, match="is a file that models are read from"):
        export(tmp_path / "program.linnet", tmp_path / "program.linnet")


@pytest.mark.parametrize("name", ["other.linnet", "linnet.toml", "nest.toml", "bindings.json"])
def test_files_that_a_package_is_made_of_stay(program: Program, tmp_path: Path, name: str) -> None:
    """Also those that the caller does not name."""
    path = tmp_path / name
    path.write_text("as it was", encoding="utf-8")
    with pytest.raises(ExportError, match=rf"{name}` is a file that models are read from"):
        export(program, path)
    assert path.read_text(encoding="utf-8") == "as it was"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "is a folder: name a file in it"),
        ("no/such/m.onnx", "there is no such folder"),
        ("a\0b", r"`a\\0b` is no path"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_places_where_no_file_can_be(program: Program, path: str, said: str) -> None:
    with pytest.raises(ExportError, match=said):
        export(program, path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device")
def test_a_device_is_written_to_and_stays(program: Program) -> None:
    with pytest.raises(ExportError, match="`/dev/full` cannot be written: No space left"):
        export(program, "/dev/full")
    with pytest.raises(ExportError, match="no file that weights could lie beside"):
        export(program, "/dev/full", external_data=True)
    assert Path("/dev/full").is_char_device()
