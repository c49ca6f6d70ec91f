"""A GGUF file's header: metadata and tensor table, read with every count and offset checked.

The format (little endian): magic, version, two counts, key/value pairs, tensor infos, padding,
data. The `gguf` package's own reader trusts all of it, so this one reads instead.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from linnet.weights.errors import FETCH_AGAIN, fail, quoted

VERSIONS = (2, 3)
PAIR_LIMIT = 65_536
TENSOR_LIMIT = 65_536
KEY_LIMIT = 1024
ARRAY_LIMIT = 8_000_000
HEADER_LIMIT = 256 << 20
RANK_LIMIT = 4
ALIGNMENT_LIMIT = 1 << 20

_SCALARS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor's place: shape in checkpoint order (rows first), GGML type, bytes."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata (scalars as Python values, arrays as lists) and tensors in the file's order."""

    metadata: Mapping[str, Any]
    tensors: tuple[GgufTensor, ...]


def read_header(path: Path) -> GgufHeader:
    """Read and check a header; raises `WeightError` (E5002, E5003), never anything else."""
    if not path.is_file():
        fail("E5002", f"the weight file {quoted(str(path))} does not exist or is no file")
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(0)
            return _Reader(str(path), file, size).header()
    except OSError as error:
        fail("E5002", f"cannot read {quoted(str(path))}: {error.strerror}")


class _Reader:
    def __init__(self, name: str, file: BinaryIO, size: int) -> None:
        self.name, self.file, self.size = name, file, size
        self.at = 0

    def bad(self, what: str) -> NoReturn:
        fail("E5003", f"{quoted(self.name, 300)} {what}", help=FETCH_AGAIN)

    def take(self, count: int) -> bytes:
        if count > self.size - self.at:
            self.bad("is truncated: its header goes on past the end of the file")
        if self.at + count > HEADER_LIMIT:
            self.bad(f"has a header past the limit of {HEADER_LIMIT} bytes")
        data = self.file.read(count)
        if len(data) != count:
            self.bad("became shorter while it was read")
        self.at += count
        return data

    def u32(self) -> int:
        return int(struct.unpack("<I", self.take(4))[0])

    def u64(self) -> int:
        return int(struct.unpack("<Q", self.take(8))[0])

    def string(self, limit: int | None = None) -> str:
        length = self.u64()
        if limit is not None and length > limit:
            self.bad(f"holds a name of {length} bytes, past the limit of {limit}")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            self.bad("holds text that is not UTF-8")

    def strings(self, count: int) -> list[Any]:
        """So many strings, from one piece of the file: a vocabulary has a hundred thousand."""
        start, at, found = self.at, 0, []
        room = min(self.size, HEADER_LIMIT) - start
        data = self.file.read(max(0, min(room, 64 * count)))
        length = struct.Struct("<Q").unpack_from
        try:
            for _ in range(count):
                end = at + 8 + length(data, at)[0]
                if end > len(data):
                    raise ValueError("the piece is too short")
                found.append(str(data[at + 8 : end], "utf-8"))
                at = end
        except (struct.error, ValueError):  # long ones, or a damaged file: with more care
            self.file.seek(start)
            return [self.string() for _ in range(count)]
        self.at = start + at
        self.file.seek(self.at)
        return found

    def header(self) -> GgufHeader:
        if self.take(4) != b"GGUF":
            self.bad("is no GGUF file")
        version = self.u32()
        if version not in VERSIONS:
            self.bad(f"has GGUF version {version}; versions 2 and 3, little endian, are read")
        tensor_count, pair_count = self.u64(), self.u64()
        if tensor_count > TENSOR_LIMIT or pair_count > PAIR_LIMIT:
            self.bad(f"claims {tensor_count} tensors and {pair_count} metadata values")
        metadata: dict[str, Any] = {}
        for _ in range(pair_count):
            key = self.string(KEY_LIMIT)
            if key in metadata:
                self.bad(f"has the metadata key {quoted(key)} twice")
            metadata[key] = self.value(self.u32())
        infos = [self.tensor_info() for _ in range(tensor_count)]
        return GgufHeader(metadata, self.placed(infos, self.alignment(metadata)))

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            self.bad(f"holds a metadata value of the unknown type {kind}")
        dtype = _SCALARS[kind]
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def array(self) -> list[Any]:
        kind, count = self.u32(), self.u64()
        if count > ARRAY_LIMIT:
            self.bad(f"holds a metadata array of {count} values, past the limit of {ARRAY_LIMIT}")
        if kind == _STRING:
            if count * 8 > self.size - self.at:  # each has its length at least
                self.bad("is truncated: a metadata array goes on past the end of the file")
            return self.strings(count)
        if kind not in _SCALARS:
            self.bad(f"holds a metadata array of the unknown type {kind}")
        dtype = _SCALARS[kind]
        values: list[Any] = np.frombuffer(self.take(count * dtype.itemsize), dtype).tolist()
        return values

    def alignment(self, metadata: dict[str, Any]) -> int:
        value = metadata.get("general.alignment", 32)
        if type(value) is not int or not 1 <= value <= ALIGNMENT_LIMIT or value & (value - 1):
            self.bad(f"has the impossible alignment {quoted(str(value))}")
        return value

    def tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.string(KEY_LIMIT)
        rank = self.u32()
        if rank > RANK_LIMIT:
            self.bad(f"gives tensor {quoted(name)} {rank} dimensions")
        shape = tuple(reversed([self.u64() for _ in range(rank)]))
        return name, shape, self.u32(), self.u64()

    def placed(
        self, infos: list[tuple[str, tuple[int, ...], int, int]], alignment: int
    ) -> tuple[GgufTensor, ...]:
        base = -(-self.at // alignment) * alignment
        seen: set[str] = set()
        tensors = []
        for name, shape, kind, offset in infos:
            if name in seen:
                self.bad(f"has tensor {quoted(name)} twice")
            seen.add(name)
            if offset % alignment:
                self.bad(f"places tensor {quoted(name)} off its alignment")
            nbytes = self.nbytes(name, shape, kind)
            if base + offset + nbytes > self.size:
                self.bad(f"is truncated: tensor {quoted(name)} goes on past the end of the file")
            tensors.append(GgufTensor(name, shape, kind, base + offset, nbytes))
        tensors.sort(key=lambda t: (t.start, t.nbytes))
        for one, two in pairwise(tensors):
            if one.start + one.nbytes > two.start:
                self.bad(f"lets tensors {quoted(one.name)} and {quoted(two.name)} overlap")
        return tuple(tensors)

    def nbytes(self, name: str, shape: tuple[int, ...], kind: int) -> int:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        try:
            block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (ValueError, KeyError):
            self.bad(f"gives tensor {quoted(name)} the unknown type {kind}")
        count = prod(shape)
        if any(n == 0 for n in shape) or count > 1 << 48:
            self.bad(f"gives tensor {quoted(name)} an impossible shape")
        if block > 1 and (not shape or shape[-1] % block):
            self.bad(f"gives tensor {quoted(name)} rows that are no whole blocks")
        return count // block * size
