"""A `.gguf` file as a source of weights under checkpoint names, quantised blocks as f32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linnet.weights.dtypes import NUMPY
from linnet.weights.errors import fail, quoted
from linnet.weights.files import FileAt
from linnet.weights.gguf_header import GgufTensor, read_header
from linnet.weights.gguf_names import KNOWN, checkpoint_name, interleaved_heads
from linnet.weights.source import PIECE_BYTES, TensorInfo, WeightSource

_PLAIN = {"F32": "f32", "F16": "f16", "BF16": "bf16", "F64": "f64"}
_PLAIN |= {"I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64"}
QUANTISED = frozenset({"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"})


@dataclass(frozen=True, slots=True)
class _Entry:
    tensor: GgufTensor
    info: TensorInfo
    heads: int  # of interleaved rows; 0 for plain ones


class GgufFile(WeightSource):
    """A checked GGUF file. `.metadata` holds its key/value pairs."""

    def __init__(self, path: Path) -> None:
        self.label = path.name
        header = read_header(path)
        self.metadata = header.metadata
        architecture = self.metadata.get("general.architecture")
        if architecture not in KNOWN:
            fail(
                "E5011",
                f"{quoted(path.name)} has the architecture {quoted(str(architecture))}, whose "
                "tensor names and row order are not known",
                notes=(f"known architectures: {', '.join(sorted(KNOWN))}",),
            )
        self._entries: dict[str, _Entry] = {}
        for tensor in header.tensors:
            name = checkpoint_name(tensor.name)
            if name in self._entries:
                fail("E5003", f"{quoted(path.name)} has two tensors for {quoted(name)}")
            self._entries[name] = self._entry(tensor, str(architecture))
        self._file = FileAt(path)

    def _entry(self, tensor: GgufTensor, architecture: str) -> _Entry:
        from gguf.constants import GGMLQuantizationType

        stored = GGMLQuantizationType(tensor.kind).name
        known = stored in _PLAIN or stored in QUANTISED
        dtype = _PLAIN.get(stored, "f32")
        info = TensorInfo(tensor.shape, dtype, tensor.nbytes, stored, True, known)
        key = interleaved_heads(tensor.name, architecture)
        return _Entry(tensor, info, 0 if key is None else self._heads(key, tensor))

    def _heads(self, key: str, tensor: GgufTensor) -> int:
        # Files of models without grouped heads leave the second count out.
        fallback = self.metadata.get(key.removesuffix("_kv"))
        heads = self.metadata.get(key, fallback)
        rows = tensor.shape[0] if tensor.shape else 0
        if type(heads) is not int or heads < 1 or rows % (2 * heads):
            fail(
                "E5003",
                f"{self.label} gives {quoted(tensor.name)} {rows} rows, which its "
                f"{quoted(key)} of {quoted(str(heads))} cannot split into heads",
            )
        return heads

    def names(self) -> list[str]:
        return list(self._entries)

    def info(self, name: str) -> TensorInfo:
        return self._entries[name].info

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def fill_bytes(self, name: str, out: np.ndarray[Any, Any]) -> bool:
        entry = self._entries[name]
        if entry.info.stored in QUANTISED or entry.heads:
            return False
        self._file.fill(entry.tensor.start, out)
        return True

    def blocks(self, name: str) -> np.ndarray[Any, Any] | None:
        entry = self._entries[name]
        if entry.info.stored not in QUANTISED:
            return None
        raw = np.empty(entry.tensor.nbytes, np.uint8)
        self._file.fill(entry.tensor.start, raw)
        return _halves(raw, entry) if entry.heads else raw

    def pieces(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        entry = self._entries[name]
        if entry.heads:
            raw = np.empty(entry.tensor.nbytes, np.uint8)
            self._file.fill(entry.tensor.start, raw)
            yield from self._decoded(entry, _halves(raw, entry))
            return
        step = _whole_blocks(entry)
        for at in range(0, entry.tensor.nbytes, step):
            raw = np.empty(min(step, entry.tensor.nbytes - at), np.uint8)
            self._file.fill(entry.tensor.start + at, raw)
            yield self._decode(entry, raw)

    def _decoded(self, entry: _Entry, raw: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
        step = _whole_blocks(entry)
        for at in range(0, raw.size, step):
            yield self._decode(entry, raw[at : at + step])

    def _decode(self, entry: _Entry, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        stored = entry.info.stored
        if stored in _PLAIN:
            return raw.view(NUMPY[entry.info.dtype])
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize

        kind = GGMLQuantizationType[stored]
        # The package works 16 rows at a time; blocks stand alone, so any row length will do.
        block = GGML_QUANT_SIZES[kind][1]
        rows = raw.reshape(-1, block * _divisor(raw.size // block))
        with np.errstate(all="ignore"):  # scales in a damaged file may be infinite or NaN
            values: np.ndarray[Any, Any] = dequantize(rows, kind)
        return values.reshape(-1)

    def close(self) -> None:
        self._file.close()


def _halves(raw: np.ndarray[Any, Any], entry: _Entry) -> np.ndarray[Any, Any]:
    """Rows of each head from interleaved pairs back to first half, second half."""
    rows = entry.info.shape[0]
    width = raw.size // rows
    pairs = raw.reshape(entry.heads, rows // entry.heads // 2, 2, width)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(-1)


def _whole_blocks(entry: _Entry) -> int:
    """Stored bytes of one piece: whole blocks whose values take about `PIECE_BYTES`."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    count, size = GGML_QUANT_SIZES[GGMLQuantizationType(entry.tensor.kind)]
    return max(1, PIECE_BYTES // (count * 4)) * size


def _divisor(blocks: int) -> int:
    """The largest power of two up to 256 that divides a number of blocks."""
    return min(256, blocks & -blocks) if blocks else 1
