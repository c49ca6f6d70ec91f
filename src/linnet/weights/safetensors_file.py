"""One `.safetensors` file: the header checked to the last byte, then plain reads.

Layout: 8 bytes header length (little endian), a JSON object, then the tensors' bytes. The spans of
all tensors have to cover the rest of the file exactly: no hole, no overlap, nothing left over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from linnet.weights.dtypes import NUMPY, SAFETENSORS
from linnet.weights.errors import FETCH_AGAIN, fail, quoted
from linnet.weights.files import FileAt
from linnet.weights.source import PIECE_BYTES, TensorInfo, WeightSource
from linnet.weights.strict_json import JsonProblem, parse_json

HEADER_LIMIT = 100_000_000  # the limit of the format's own library
RANK_LIMIT = 16
EXTENT_LIMIT = 1 << 48
TENSOR_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class _Entry:
    info: TensorInfo
    start: int  # in the file


class SafetensorsFile(WeightSource):
    """A checked file. Raises `WeightError` (E5002, E5003) before anything of it is used."""

    def __init__(self, path: Path) -> None:
        self.label = path.name
        self._file = FileAt(path)
        try:
            self._entries = _entries(self._file)
        except BaseException:
            self._file.close()
            raise

    def names(self) -> list[str]:
        return list(self._entries)

    def info(self, name: str) -> TensorInfo:
        return self._entries[name].info

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def fill_bytes(self, name: str, out: np.ndarray[Any, Any]) -> bool:
        self._file.fill(self._entries[name].start, out)
        return True

    def pieces(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        entry = self._entries[name]
        dtype = NUMPY[entry.info.dtype]
        held = np.empty(min(entry.info.nbytes, PIECE_BYTES), np.uint8)
        for at in range(0, entry.info.nbytes, PIECE_BYTES):
            part = held[: min(PIECE_BYTES, entry.info.nbytes - at)]
            self._file.fill(entry.start + at, part)
            yield part.view(dtype)

    def close(self) -> None:
        self._file.close()


def _entries(file: FileAt) -> dict[str, _Entry]:
    header, data_start = _header(file)
    entries: dict[str, _Entry] = {}
    for name, value in header.items():
        if name == "__metadata__":
            _check_metadata(file, value)
        else:
            entries[name] = _entry(file, name, value, data_start)
    _check_cover(file, entries, data_start)
    return dict(sorted(entries.items(), key=lambda item: item[1].start))


def _bad(file: FileAt, what: str) -> NoReturn:
    fail("E5003", f"{quoted(str(file.path), 300)} {what}", help=FETCH_AGAIN)


def _header(file: FileAt) -> tuple[dict[str, Any], int]:
    if file.size < 8:
        _bad(file, f"is no safetensors file: it has only {file.size} bytes")
    length = int.from_bytes(file.bytes_at(0, 8), "little")
    if length > file.size - 8:
        _bad(file, f"is truncated or damaged: header of {length} bytes, file of {file.size}")
    if length > HEADER_LIMIT:
        _bad(file, f"has a header of {length} bytes, past the limit of {HEADER_LIMIT}")
    text = file.bytes_at(8, length)
    if not text.startswith(b"{"):
        _bad(file, "is no safetensors file: its header is no JSON object")
    try:
        header = parse_json(text, HEADER_LIMIT)
    except JsonProblem as problem:
        _bad(file, f"has a header that {problem}")
    if not isinstance(header, dict):
        _bad(file, "has a header that is no JSON object")
    if len(header) > TENSOR_LIMIT:
        _bad(file, f"lists {len(header)} tensors, past the limit of {TENSOR_LIMIT}")
    return header, 8 + length


def _check_metadata(file: FileAt, value: object) -> None:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        _bad(file, "has metadata that is not a table of strings")


def _entry(file: FileAt, name: str, value: object, data_start: int) -> _Entry:
    who = f"tensor {quoted(name)}"
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        _bad(file, f"describes {who} by other keys than dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in SAFETENSORS:
        _bad(file, f"gives {who} the unknown dtype {quoted(str(dtype))}")
    if not isinstance(shape, list) or len(shape) > RANK_LIMIT or not all(map(_extent, shape)):
        _bad(file, f"gives {who} an impossible shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_extent, offsets)):
        _bad(file, f"gives {who} impossible offsets")
    start, end = offsets
    linnet, bits = SAFETENSORS[dtype]
    if start > end or data_start + end > file.size:
        _bad(file, f"places {who} at bytes {start} to {end}, outside the file")
    if prod(shape) * bits != (end - start) * 8:
        _bad(file, f"gives {who} {end - start} bytes, which its shape {shape} and {dtype} belie")
    known = linnet in NUMPY
    info = TensorInfo(tuple(shape), linnet, end - start, dtype, readable=known)
    return _Entry(info, data_start + start)


def _extent(value: object) -> bool:
    return type(value) is int and 0 <= value < EXTENT_LIMIT


def _check_cover(file: FileAt, entries: dict[str, _Entry], data_start: int) -> None:
    at = data_start
    order = sorted(entries.items(), key=lambda item: (item[1].start, item[1].info.nbytes))
    for name, entry in order:
        if entry.start < at:
            _bad(file, f"lets tensor {quoted(name)} overlap another")
        if entry.start > at:
            _bad(file, f"has {entry.start - at} bytes before tensor {quoted(name)} in no tensor")
        at += entry.info.nbytes
    if at != file.size:
        _bad(file, f"has {file.size - at} bytes after its last tensor")
