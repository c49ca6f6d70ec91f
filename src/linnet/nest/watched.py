"""A source of weights that tells how much of it has been read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from linnet.nest.progress import Advance
from linnet.weights import TensorInfo, WeightSource


class WatchedSource(WeightSource):
    """Another source, with `advance` called with the stored bytes of each tensor read."""

    def __init__(self, source: WeightSource, advance: Advance) -> None:
        self.label = source.label
        self._source, self._advance = source, advance

    def names(self) -> list[str]:
        return self._source.names()

    def info(self, name: str) -> TensorInfo:
        return self._source.info(name)

    def __contains__(self, name: object) -> bool:
        return name in self._source

    def pieces(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        return self._source.pieces(name)

    def fill_bytes(self, name: str, out: np.ndarray[Any, Any]) -> bool:
        return self._source.fill_bytes(name, out)

    def blocks(self, name: str) -> np.ndarray[Any, Any] | None:
        found = self._source.blocks(name)
        if found is not None:
            self._advance(self.info(name).nbytes)
        return found

    def read_into(self, name: str, out: np.ndarray[Any, Any]) -> None:
        self._source.read_into(name, out)
        self._advance(self.info(name).nbytes)

    def close(self) -> None:
        self._source.close()
