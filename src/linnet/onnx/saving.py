"""Model files: each appears whole, by a rename, or what was there before stays."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx_ir as ir

from linnet.diagnostics.escape import escape_text
from linnet.onnx.emit.errors import ExportError

# Past this many bytes a file holds its weights beside it: protobuf ends at 2 GiB.
EXTERNAL = 1_900_000_000
_READ = (".linnet", ".toml", ".safetensors", ".gguf", ".json")


def data_path(path: Path) -> Path:
    """Where the weights of a model at `path` lie when they are not in it."""
    return path.with_name(f"{path.name}.data")


def check_place(path: Path, read: Sequence[Any]) -> None:
    """Raises `ExportError` where no file can be made at `path`, and where one would take the place
    of what the model is made from: `read` holds sources, weights and bindings as callers give
    them, and no file that is named as one of those is replaced."""
    if "\0" in str(path):
        raise ExportError(f"{_named(path)} is no path")
    with _named_errors(path):
        if path.is_dir():
            raise ExportError(f"{_named(path)} is a folder: name a file in it")
        if not path.parent.is_dir():
            raise ExportError(f"{_named(path)} cannot be written: there is no such folder")
        if path.exists() and not os.access(path, os.W_OK):
            raise ExportError(f"{_named(path)} cannot be written: it is read-only")
        for made in (path, data_path(path)):
            if _is_source(made) or any(_same(made, known) for known in _files(read)):
                raise ExportError(f"{_named(made)} is a file that models are read from: write to "
                                  "another place")  # fmt: skip


def save(model: ir.Model, path: Path, external_data: bool | None = None) -> None:
    """Writes the model; large weights go to `<name>.data` beside it. A link at either name is
    replaced, not followed. Raises `ExportError` where that fails; nothing half-written is left."""
    held = [v.const_value for v in model.graph.initializers.values()]
    total = sum(t.nbytes for t in held if t is not None)
    if external_data is False and total > EXTERNAL:
        raise ExportError(f"{_named(path)}: a model file holds at most 2 GB, these weights take "
                          f"{total:,} bytes: leave `external_data` out")  # fmt: skip
    external = bool(external_data) or total > EXTERNAL
    with _named_errors(path):
        if path.exists() and not path.is_file():
            _into(model, path, external)
        else:
            _beside(model, path, external)


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """What the system refuses, as one error that names the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or escape_text(str(error), 200) or type(error).__name__
        raise ExportError(f"{_named(path)} cannot be written: {reason}") from error


def _into(model: ir.Model, path: Path, external: bool) -> None:
    """Into a pipe or a device."""
    if external:
        raise ExportError(f"{_named(path)} is no file that weights could lie beside")
    with path.open("wb") as file:
        file.write(ir.to_proto(model).SerializeToString())


def _beside(model: ir.Model, path: Path, external: bool) -> None:
    """In a folder beside the place, from where the files are moved: the weights first."""
    data = data_path(path)
    folder = Path(tempfile.mkdtemp(prefix=".linnet-", dir=path.parent))
    try:
        made = folder / path.name
        ir.save(model, made, external_data=data.name if external else None)
        weights = folder / data.name
        if weights.exists() and weights.stat().st_size:  # none is large enough to be in a file
            weights.replace(data)
        made.replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _files(read: Sequence[Any]) -> Iterator[Path]:
    """The files among what a model is read from; of a folder those in it."""
    for item in read:
        if isinstance(item, list | tuple):
            yield from _files(item)
        elif isinstance(item, str | Path) and "\0" not in str(item):
            path = Path(item)
            if path.is_dir():
                yield from (p for p in path.iterdir() if p.suffix.lower() in _READ)
            else:
                yield path


def _is_source(made: Path) -> bool:
    """Whether a file is there of a kind that models are read from: a package imports files that
    nobody names here."""
    return made.suffix.lower() in _READ and made.exists()


def _same(made: Path, known: Path) -> bool:
    return made.exists() and known.exists() and made.samefile(known)


def _named(path: Path) -> str:
    return f"`{escape_text(str(path), 400)}`"
