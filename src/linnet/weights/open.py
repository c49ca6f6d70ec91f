"""From what a user names to a source of weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linnet.weights.errors import fail, quoted
from linnet.weights.files import refuse_pickle
from linnet.weights.mapping import MappingSource
from linnet.weights.safetensors_file import SafetensorsFile
from linnet.weights.shards import open_folder
from linnet.weights.source import WeightSource

Weights = str | Path | Mapping[str, Any]


def open_weights(source: Weights | WeightSource) -> WeightSource:
    """Open a `.safetensors` or `.gguf` file, a folder of shards, or a mapping of arrays.

    Headers are read and checked, tensors are not read. Raises `WeightError`.
    """
    if isinstance(source, WeightSource):
        return source
    if isinstance(source, Mapping):
        return MappingSource(source)
    if not isinstance(source, (str, Path)):
        fail("E5002", f"weights are a path or a mapping, not a {type(source).__name__}")
    if "\0" in str(source):
        fail("E5002", "a weights path holds a zero character")
    path = Path(source)
    if path.is_dir():
        return open_folder(path)
    if not path.exists():
        fail("E5002", f"there are no weights at {quoted(str(path))}")
    refuse_pickle(path)
    match path.suffix.lower():
        case ".safetensors":
            return SafetensorsFile(path)
        case ".gguf":
            from linnet.weights.gguf_file import GgufFile

            return GgufFile(path)
        case _:
            fail(
                "E5002",
                f"{quoted(path.name)} is of a kind that is not read",
                help="weights are .safetensors or .gguf files, or a folder of .safetensors files",
            )
