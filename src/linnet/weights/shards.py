"""A folder of `.safetensors` shards, with or without an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.weights.errors import WeightError, fail, fail_all, problem, quoted
from linnet.weights.safetensors_file import SafetensorsFile
from linnet.weights.source import TensorInfo, WeightSource
from linnet.weights.strict_json import JsonProblem, parse_json

INDEX_LIMIT = 64 << 20
SHARD_LIMIT = 10_000
LISTED = 20  # problems of one kind worth showing


class Shards(WeightSource):
    """Every tensor of a folder's shards under one roof, file after file."""

    def __init__(self, folder: Path, files: list[Path], index: dict[str, str] | None) -> None:
        self.label = folder.name or str(folder)
        self._shards: dict[str, SafetensorsFile] = {}
        try:
            self._open(files)
            self._home = self._homes() if index is None else self._indexed(index)
        except BaseException:
            self.close()
            raise

    def _open(self, files: list[Path]) -> None:
        problems: list[Diagnostic] = []
        for path in files:
            try:
                self._shards[path.name] = SafetensorsFile(path)
            except WeightError as error:
                problems += error.diagnostics
        fail_all(problems)

    def _homes(self) -> dict[str, SafetensorsFile]:
        homes: dict[str, SafetensorsFile] = {}
        for shard in self._shards.values():
            for name in shard.names():
                if name in homes:
                    where = f"{quoted(homes[name].label)} and {quoted(shard.label)}"
                    fail("E5004", f"tensor {quoted(name)} is in two files, {where}")
                homes[name] = shard
        return homes

    def _indexed(self, index: dict[str, str]) -> dict[str, SafetensorsFile]:
        problems = []
        for name, file in index.items():
            if name not in self._shards[file]:
                elsewhere = [s.label for s in self._shards.values() if name in s]
                there = f"; it is in {quoted(elsewhere[0])}" if elsewhere else ""
                what = f"the index places tensor {quoted(name)} in {quoted(file)}, which lacks it"
                problems.append(problem("E5004", what + there))
        fail_all(problems[:LISTED])
        return {
            name: shard
            for file, shard in self._shards.items()
            for name in shard.names()
            if index.get(name) == file
        }

    def names(self) -> list[str]:
        return list(self._home)

    def info(self, name: str) -> TensorInfo:
        return self._home[name].info(name)

    def __contains__(self, name: object) -> bool:
        return name in self._home

    def fill_bytes(self, name: str, out: np.ndarray[Any, Any]) -> bool:
        return self._home[name].fill_bytes(name, out)

    def pieces(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        return self._home[name].pieces(name)

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()


def open_folder(folder: Path) -> WeightSource:
    """The weights of a folder: its one index's shards, or every `.safetensors` file in it."""
    indexes = sorted(folder.glob("*.safetensors.index.json"))
    if len(indexes) > 1:
        names = ", ".join(quoted(p.name) for p in indexes[:LISTED])
        fail("E5004", f"{quoted(folder.name)} has several shard indexes: {names}")
    if indexes:
        index = _read_index(indexes[0])
        return Shards(folder, _shard_files(folder, index), index)
    files = sorted(p for p in folder.glob("*.safetensors"))
    if not files:
        _fail_empty(folder)
    if len(files) > SHARD_LIMIT:
        fail("E5004", f"{quoted(folder.name)} has more than {SHARD_LIMIT} .safetensors files")
    for path in files:
        _stay_inside(folder, path)
    return SafetensorsFile(files[0]) if len(files) == 1 else Shards(folder, files, None)


def _fail_empty(folder: Path) -> None:
    others = sorted(p.name for p in folder.glob("*.gguf"))
    help = f"name the file itself: {folder / others[0]}" if others else None
    if not others and any(folder.glob("*.bin")):
        help = "its .bin files are pickles, which are refused; convert them to .safetensors"
    fail("E5002", f"the folder {quoted(str(folder))} holds no .safetensors file", help=help)


def _read_index(path: Path) -> dict[str, str]:
    who = f"the shard index {quoted(path.name)}"
    try:
        with open(path, "rb") as file:
            value = parse_json(file.read(INDEX_LIMIT + 1), INDEX_LIMIT)
    except JsonProblem as error:
        fail("E5004", f"{who} {error}")
    except OSError as error:
        fail("E5002", f"cannot read {who}: {error.strerror}")
    table = value.get("weight_map") if isinstance(value, dict) else None
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        fail("E5004", f"{who} has no `weight_map` from tensor names to file names")
    return table


def _shard_files(folder: Path, index: dict[str, str]) -> list[Path]:
    names = sorted(set(index.values()))
    if len(names) > SHARD_LIMIT:
        fail("E5004", f"the shard index names more than {SHARD_LIMIT} files")
    problems = []
    for name in names:
        if not plain_file_name(name):
            what = f"the shard index names {quoted(name)}, which is no plain file name"
            problems.append(problem("E5004", what))
        elif not name.endswith(".safetensors"):
            what = f"the shard index names {quoted(name)}, which is no .safetensors file"
            problems.append(problem("E5004", what))
        elif not (folder / name).is_file():
            what = f"the shard index names {quoted(name)}, which is not in {quoted(folder.name)}"
            problems.append(problem("E5004", what, help="fetch the missing shard"))
    fail_all(problems[:LISTED])
    for name in names:
        _stay_inside(folder, folder / name)
    return [folder / name for name in names]


def plain_file_name(name: str) -> bool:
    """Whether a stranger's file name is one that stays in its folder on every platform."""
    return (
        0 < len(name) <= 255
        and name not in (".", "..")
        and name.isprintable()
        and not any(c in name for c in '/\\:*?"<>|')
    )


def _stay_inside(folder: Path, path: Path) -> None:
    """Refuse a link that leads out of the folder.

    The Hub's cache is the one exception: a snapshot's files there are links into `blobs` beside it.
    """
    home, target = folder.resolve(), path.resolve()
    allowed = [home]
    if home.parent.name == "snapshots":
        allowed.append(home.parent.parent / "blobs")
    if not any(target.is_relative_to(root) for root in allowed):
        fail("E5004", f"the shard {quoted(path.name)} is a link that leads out of its folder")
