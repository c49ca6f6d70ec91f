"""One `.safetensors` file: what the format's own library writes is read, and nothing worse is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import torch

from linnet.weights import WeightError, open_weights
from linnet.weights.safetensors_file import HEADER_LIMIT


def build(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    return size.to_bytes(8, "little") + text + data


def one(dtype: str = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def fails(tmp_path: Path, content: bytes, part: str, code: str = "E5003") -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(WeightError) as caught:
        open_weights(path)
    found = caught.value.diagnostics
    assert [d.code for d in found] == [code]
    assert part in found[0].message


def sample() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return {
        "b.weight": rng.standard_normal((3, 5)).astype(np.float32),
        "a.half": rng.standard_normal((4,)).astype(ml_dtypes.bfloat16),
        "ids": np.arange(6, dtype=np.int64).reshape(2, 3),
        "flag": np.array([True, False]),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 4), np.float32),
    }


def test_reads_what_the_library_writes(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file(sample(), path, {"format": "pt"})
    with open_weights(path) as weights:
        assert set(weights.names()) == set(sample())
        for name, want in sample().items():
            got = weights.read(name)
            assert got.dtype == want.dtype and got.shape == want.shape
            assert got.tobytes() == want.tobytes()
            assert weights.info(name).nbytes == want.nbytes
            tensor = weights.read_torch(name)
            assert tuple(tensor.shape) == want.shape
            assert np.array_equal(tensor.float().numpy(), want.astype(np.float32))


def test_converts_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linnet.weights.safetensors_file.PIECE_BYTES", 16)
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file(sample(), path)
    with open_weights(path) as weights:
        want = sample()["b.weight"].astype(ml_dtypes.bfloat16)
        assert weights.read("b.weight", "bf16").tobytes() == want.tobytes()
        got = weights.read_torch("b.weight", "bf16")
        assert torch.equal(got, torch.from_numpy(sample()["b.weight"]).bfloat16())


def test_fills_part_of_a_tensor(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file(sample(), path)
    joined = torch.zeros(6, 5)
    with open_weights(path) as weights:
        weights.read_torch_into("b.weight", joined[1:4])
        weights.read_torch_into("b.weight", joined[3:])
        columns = torch.zeros(3, 10)
        weights.read_torch_into("b.weight", columns[:, 5:])
    want = torch.from_numpy(sample()["b.weight"])
    assert torch.equal(joined[3:], want) and torch.equal(joined[1], want[0])
    assert torch.equal(columns[:, 5:], want) and not columns[:, :5].any()


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"x": np.arange(4.0), "y": np.ones((2, 2), np.float16)}, path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(WeightError):
            open_weights(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(WeightError):
        open_weights(path)


def test_every_changed_byte_is_an_error_or_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"x": np.arange(4.0)}, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(600):
        data = bytearray(whole)
        data[rng.integers(len(data) - 32)] = rng.integers(256)
        path.write_bytes(data)
        try:
            with open_weights(path) as weights:
                for name in weights.names():
                    if weights.info(name).readable:
                        weights.read(name)
        except WeightError:
            pass


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        (one(offsets=(0, 12)), "outside the file"),
        (one(offsets=(8, 0)), "outside the file"),
        (one(offsets=(-8, 0)), "impossible offsets"),
        (one(offsets=(0, 8, 9)), "impossible offsets"),
        (one(offsets=(0.0, 8.0)), "impossible offsets"),
        (one(offsets=(0, 1 << 70)), "impossible offsets"),
        (one(shape=(3,)), "belie"),
        (one(shape=(-2, -1)), "impossible shape"),
        (one(shape=(True, 2)), "impossible shape"),
        (one(shape=(1,) * 17), "impossible shape"),
        (one(shape=(1 << 62, 4)), "impossible shape"),
        (one(shape=(1 << 40, 1 << 40)), "belie"),
        (one(shape=("2",)), "impossible shape"),
        (one(dtype="F33"), "unknown dtype"),
        ({"dtype": "F32", "shape": [2]}, "other keys"),
        ([], "other keys"),
        (None, "other keys"),
    ],
)
def test_hostile_entries(tmp_path: Path, entry: Any, part: str) -> None:
    fails(tmp_path, build({"x": entry}, b"\0" * 8), part)


def test_hostile_headers(tmp_path: Path) -> None:
    fails(tmp_path, b"", "no safetensors file")
    fails(tmp_path, b"\0" * 8, "no JSON object")
    fails(tmp_path, build({}, length=1 << 63), "truncated or damaged")
    fails(tmp_path, build(b"[1]"), "no JSON object")
    fails(tmp_path, build(b"{" * 100_000), "not valid JSON")
    fails(tmp_path, build(b'{"x":' + b"[" * 100_000), "nested too deeply")
    fails(tmp_path, build(b'{"x": NaN}'), "NaN")
    fails(tmp_path, build(b'{"x": ' + b"9" * 5000 + b"}"), "too long")
    fails(tmp_path, build(b'{"\xff": 1}'), "not UTF-8")
    twice = b'{"x":' + json.dumps(one()).encode() + b',"x":' + json.dumps(one()).encode() + b"}"
    fails(tmp_path, build(twice, b"\0" * 8), "twice")
    fails(tmp_path, build({"__metadata__": {"a": 1}}), "metadata")


def test_header_limit_needs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with open(path, "wb") as file:  # sparse: nothing is written but the length
        file.write((HEADER_LIMIT + 1).to_bytes(8, "little"))
        file.truncate(HEADER_LIMIT + 100)
    with pytest.raises(WeightError, match="past the limit"):
        open_weights(path)


def test_overlap_hole_and_rest(tmp_path: Path) -> None:
    two = {"x": one(), "y": one(offsets=(4, 12))}
    fails(tmp_path, build(two, b"\0" * 12), "overlap")
    two = {"x": one(), "y": one(offsets=(12, 20))}
    fails(tmp_path, build(two, b"\0" * 20), "in no tensor")
    fails(tmp_path, build({"x": one()}, b"\0" * 9), "after its last tensor")


def test_dtypes_linnet_lacks_stay_unread(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(build({"x": one("F8_E4M3", (8,))}, b"\0" * 8))
    with open_weights(path) as weights:
        assert not weights.info("x").readable


def test_a_file_cut_while_open_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"x": np.arange(1000.0)}, path)
    with open_weights(path) as weights:
        with open(path, "r+b") as file:
            file.truncate(200)
        with pytest.raises(WeightError, match="shorter"):
            weights.read("x")


@pytest.mark.parametrize("name", ["m.bin", "m.pt", "m.pth", "m.ckpt", "m.PKL"])
def test_pickles_are_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(WeightError) as caught:
        open_weights(tmp_path / name)
    assert caught.value.diagnostics[0].code == "E5012"


def test_pickles_are_refused_by_content(tmp_path: Path) -> None:
    for name in ("m.safetensors", "m.gguf", "m"):
        torch.save({"x": torch.ones(2)}, tmp_path / name)
        with pytest.raises(WeightError) as caught:
            open_weights(tmp_path / name)
        assert caught.value.diagnostics[0].code == "E5012"


def test_other_places_are_errors(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("x")
    for path in (tmp_path / "nothing", tmp_path / "m.txt", tmp_path, "a\0b", Path("/dev/null")):
        with pytest.raises(WeightError) as caught:
            open_weights(path)
        assert caught.value.diagnostics[0].code == "E5002"
