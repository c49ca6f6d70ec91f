"""From what a user names to a source of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from linnet.weights.errors import fail, quoted
from linnet.weights.files import refuse_pickle
from linnet.weights.mapping import MappingSource
from linnet.weights.safetensors_file import SafetensorsFile
from linnet.weights.shards import Shards, open_folder
from linnet.weights.source import WeightSource

Weights = str | Path | Sequence[str | Path] | Mapping[str, Any]


def open_weights(source: Weights | WeightSource) -> WeightSource:
    """Open a `.safetensors` or `.gguf` file, a folder or list of shards, or a mapping of arrays.

    Headers are read and checked, tensors are not read. Raises `WeightError`.
    """
    if isinstance(source, WeightSource):
        return source
    if isinstance(source, Mapping):
        return MappingSource(source)
    if isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
        return _open_files([Path(path) for path in source])
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
    if path.suffix.lower() == ".safetensors":
        return SafetensorsFile(path)
    if path.suffix.lower() != ".gguf":
        fail(
            "E5002",
            f"{quoted(path.name)} is of a kind that is not read",
            help="weights are .safetensors or .gguf files, or a folder of .safetensors files",
        )
    from linnet.weights.gguf_file import GgufFile

    return GgufFile(path)


def _open_files(paths: list[Path]) -> WeightSource:
    """Shards named one by one; a single file of any kind."""
    if len(paths) == 1:
        return open_weights(paths[0])
    for path in paths:
        refuse_pickle(path)
        if path.suffix.lower() != ".safetensors":
            what = f"{quoted(path.name)} is no .safetensors file, so it cannot be one of several"
            fail("E5002", what)
    if not paths or len({path.name for path in paths}) != len(paths):
        fail("E5002", "a list of weight files is empty or names a file twice")
    return Shards(paths[0].parent, paths, None)
