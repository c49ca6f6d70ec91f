"""GGUF files: values, names and row order against the checkpoint; hostile headers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, MODEL_ARCH, GGMLQuantizationType

from linnet.weights import ParamSpec, WeightError, open_weights, plan_load
from linnet.weights.gguf_header import read_header
from linnet.weights.gguf_names import checkpoint_name

HEADS, KV_HEADS, WIDTH = 4, 2, 256


def permuted(rows: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """What the conversion to the `llama` architecture does to query and key rows."""
    pairs = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def write(path: Path, arch: str = "llama", kind: str = "F32") -> dict[str, np.ndarray[Any, Any]]:
    """A file with one layer's attention and the embedding; returns the checkpoint's values."""
    rng = np.random.default_rng(3)
    drawn: dict[str, Any] = {
        "model.embed_tokens.weight": rng.standard_normal((6, WIDTH)).astype(np.float32),
        "model.layers.0.self_attn.q_proj.weight": rng.standard_normal((WIDTH, WIDTH)),
        "model.layers.0.self_attn.k_proj.weight": rng.standard_normal((WIDTH // 2, WIDTH)),
        "model.layers.0.self_attn.v_proj.weight": rng.standard_normal((WIDTH // 2, WIDTH)),
        "model.layers.0.self_attn.q_proj.bias": rng.standard_normal((WIDTH,)),
        "model.norm.weight": rng.standard_normal((WIDTH,)).astype(np.float32),
    }
    checkpoint = {name: value.astype(np.float32) for name, value in drawn.items()}
    stored = {
        "token_embd.weight": checkpoint["model.embed_tokens.weight"],
        "blk.0.attn_q.weight": checkpoint["model.layers.0.self_attn.q_proj.weight"],
        "blk.0.attn_k.weight": checkpoint["model.layers.0.self_attn.k_proj.weight"],
        "blk.0.attn_v.weight": checkpoint["model.layers.0.self_attn.v_proj.weight"],
        "blk.0.attn_q.bias": checkpoint["model.layers.0.self_attn.q_proj.bias"],
        "output_norm.weight": checkpoint["model.norm.weight"],
    }
    if arch == "llama":
        for name, heads in (("q.weight", HEADS), ("k.weight", KV_HEADS), ("q.bias", HEADS)):
            stored[f"blk.0.attn_{name}"] = permuted(stored[f"blk.0.attn_{name}"], heads)
    writer = gguf.GGUFWriter(path, arch)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_array("some.names", ["a", "bc"])
    for name, value in stored.items():
        _add(writer, name, value, kind if value.ndim > 1 else "F32")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return checkpoint


def _add(writer: gguf.GGUFWriter, name: str, value: np.ndarray[Any, Any], kind: str) -> None:
    match kind:
        case "F32":
            writer.add_tensor(name, value)
        case "F16":
            writer.add_tensor(name, value.astype(np.float16))
        case _:
            quantised = gguf.quantize(value, GGMLQuantizationType[kind])
            writer.add_tensor(name, quantised, raw_dtype=GGMLQuantizationType[kind])


TOLERANCE = {"F32": 0.0, "F16": 2e-3, "BF16": 2e-2, "Q8_0": 0.03, "Q4_0": 0.6, "Q4_1": 0.4}


@pytest.mark.parametrize("arch", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("kind", list(TOLERANCE))
def test_names_rows_and_values(tmp_path: Path, arch: str, kind: str) -> None:
    want = write(tmp_path / "m.gguf", arch, kind)
    with open_weights(tmp_path / "m.gguf") as weights:
        assert set(weights.names()) == set(want)
        for name, value in want.items():
            got = weights.read(name, "f32")
            assert got.shape == value.shape
            assert np.abs(got - value).max() <= TOLERANCE[kind], name
            half = weights.read(name, "bf16")
            assert half.tobytes() == got.astype(ml_dtypes.bfloat16).tobytes()


def test_pieces_of_any_size_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "m.gguf", kind="Q4_1")
    with open_weights(tmp_path / "m.gguf") as weights:
        whole = {name: weights.read(name) for name in weights.names()}
    monkeypatch.setattr("linnet.weights.gguf_file.PIECE_BYTES", 1000)
    with open_weights(tmp_path / "m.gguf") as weights:
        for name, value in whole.items():
            assert np.array_equal(weights.read(name), value)


def test_floats_convert_without_being_asked(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", kind="Q8_0")
    with open_weights(tmp_path / "m.gguf") as weights:
        made = plan_load([ParamSpec("model.norm.weight", (WIDTH,), "bf16")], weights)
        assert made.read(made.items[0]).dtype == ml_dtypes.bfloat16


def test_names_agree_with_the_package() -> None:
    for arch in (MODEL_ARCH.LLAMA, MODEL_ARCH.QWEN2, MODEL_ARCH.QWEN3):
        table = gguf.get_tensor_name_map(arch, 3)
        parts = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"]
        parts += ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "input_layernorm"]
        parts += ["post_attention_layernorm"]
        if arch == MODEL_ARCH.QWEN3:
            parts += ["self_attn.q_norm", "self_attn.k_norm"]
        names = [f"model.layers.2.{part}.weight" for part in parts]
        for name in [*names, "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"]:
            stored = table.get_name(name, try_suffixes=(".weight",))
            assert stored is not None and checkpoint_name(stored) == name


def _q4_k(block: bytes) -> list[float]:
    """Values of one 256-value `Q4_K` block, from the format's definition, one by one."""
    d, dmin = np.frombuffer(block[:4], np.float16).astype(np.float32)
    scales, quants = block[4:16], block[16:]
    out = []
    for j in range(8):
        if j < 4:
            scale, low = scales[j] & 63, scales[j + 4] & 63
        else:
            scale = (scales[j + 4] & 15) | ((scales[j - 4] >> 6) << 4)
            low = (scales[j + 4] >> 4) | ((scales[j] >> 6) << 4)
        for k in range(32):
            byte = quants[32 * (j // 2) + k]
            value = byte >> 4 if j % 2 else byte & 15
            out.append(float(d * np.float32(scale) * value - dmin * np.float32(low)))
    return out


def _q6_k(block: bytes) -> list[float]:
    """Values of one 256-value `Q6_K` block, from the format's definition, one by one."""
    low, high = block[:128], block[128:192]
    scales = np.frombuffer(block[192:208], np.int8)
    d = float(np.frombuffer(block[208:210], np.float16)[0])
    out = []
    for n in range(256):
        half, rest = divmod(n, 128)
        quarter, lane = divmod(rest, 32)
        bits = low[64 * half + 32 * (quarter % 2) + lane]
        bits = bits >> 4 if quarter >= 2 else bits & 15
        top = (high[32 * half + lane] >> (2 * quarter)) & 3
        out.append(d * float(scales[n // 16]) * ((bits | top << 4) - 32))
    return out


@pytest.mark.parametrize(("kind", "reference"), [("Q4_K", _q4_k), ("Q6_K", _q6_k)])
def test_k_quants_by_definition(tmp_path: Path, kind: str, reference: Any) -> None:
    size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]
    rng = np.random.default_rng(5)
    raw = rng.integers(0, 256, (3, 2 * size), dtype=np.uint8)
    for row in raw.reshape(-1, size):  # scales that are ordinary numbers
        at = 208 if kind == "Q6_K" else 0
        row[at : at + (2 if kind == "Q6_K" else 4)] = (
            rng.uniform(0.01, 1, 1 if kind == "Q6_K" else 2).astype(np.float16).view(np.uint8)
        )
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "qwen3")
    writer.add_tensor("output.weight", raw, raw_dtype=GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with open_weights(tmp_path / "m.gguf") as weights:
        got = weights.read("lm_head.weight")
    assert got.shape == (3, 512)
    want = [value for block in raw.reshape(-1, size) for value in reference(block.tobytes())]
    assert np.allclose(got.reshape(-1), want, rtol=1e-5, atol=1e-5)


def test_unknown_architectures_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", "mamba")
    with pytest.raises(WeightError) as caught:
        open_weights(tmp_path / "m.gguf")
    assert caught.value.diagnostics[0].code == "E5011"


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write(path, kind="Q4_0")
    whole = path.read_bytes()
    header_end = whole.index(b"output_norm.weight") + 60
    for size in [*range(header_end), *range(header_end, len(whole) - 32, 4001)]:
        path.write_bytes(whole[:size])
        with pytest.raises(WeightError):
            open_weights(path)


def test_changed_header_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write(path, kind="Q4_0")
    whole = path.read_bytes()
    header_end = whole.index(b"output_norm.weight") + 60
    rng = np.random.default_rng(2)
    for _ in range(800):
        data = bytearray(whole)
        data[rng.integers(header_end)] = rng.integers(256)
        path.write_bytes(data)
        try:
            with open_weights(path) as weights:
                for name in weights.names():
                    info = weights.info(name)
                    if info.readable:
                        assert weights.read(name).shape == info.shape
        except WeightError:
            pass


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def header(tensors: int = 0, pairs: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs)


ARCH = string(b"general.architecture") + struct.pack("<I", 8) + string(b"llama")


def tensor(
    dims: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0, name: bytes = b"x"
) -> bytes:
    parts = string(name) + struct.pack("<I", len(dims))
    return parts + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, offset)


def pad(data: bytes, size: int = 16) -> bytes:
    return data + b"\0" * (-len(data) % 32 + size)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"GGML", header(version=1), header(version=4), header(1 << 60, 0), header(0, 1 << 60),
        header(0, 1) + struct.pack("<Q", 1 << 63),
        header(0, 1) + string(b"k") + struct.pack("<I", 99),
        header(0, 1) + string(b"k") + struct.pack("<IIQ", 9, 8, 1 << 61),
        header(0, 1) + string(b"k") + struct.pack("<IIQ", 9, 9, 4),
        header(0, 1) + string(b"k") + struct.pack("<IIQ", 9, 0, 1 << 40),
        header(0, 1) + string(b"\xff") + struct.pack("<IB", 0, 1),
        header(0, 2) + ARCH + ARCH,
        header(0, 1) + string(b"general.alignment") + struct.pack("<II", 4, 0),
        header(0, 1) + string(b"general.alignment") + struct.pack("<II", 4, 24),
        pad(header(1, 1) + ARCH + tensor((1 << 40, 1 << 40))),
        pad(header(1, 1) + ARCH + tensor((1 << 63,))),
        pad(header(1, 1) + ARCH + tensor((0,))),
        pad(header(1, 1) + ARCH + tensor((1, 1, 1, 1, 1))),
        pad(header(1, 1) + ARCH + tensor(kind=77)),
        pad(header(1, 1) + ARCH + tensor(kind=2)),  # no whole block
        pad(header(1, 1) + ARCH + tensor(offset=1 << 62)),
        pad(header(1, 1) + ARCH + tensor(offset=4)),
        pad(header(2, 1) + ARCH + tensor() + tensor()),
        pad(header(2, 1) + ARCH + tensor() + tensor(name=b"y")),  # overlap
        pad(header(1, 1) + ARCH + tensor(name=b"blk.0.attn_q.weight")),  # no head count
    ],
)  # fmt: skip
def test_hostile_headers(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(WeightError) as caught:
        open_weights(path)
    assert caught.value.diagnostics[0].code == "E5003"


def test_the_smallest_good_file(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(pad(header(1, 1) + ARCH + tensor()))
    with open_weights(path) as weights:
        assert weights.read("x").tolist() == [0.0] * 4
    assert read_header(path).metadata == {"general.architecture": "llama"}


def test_kinds_that_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(pad(header(1, 1) + ARCH + tensor((256,), kind=10), 84))  # Q2_K
    with open_weights(path) as weights, pytest.raises(WeightError) as caught:
        plan_load([ParamSpec("x", (256,), "f32")], weights)
    assert [d.code for d in caught.value.diagnostics] == ["E5011"]
