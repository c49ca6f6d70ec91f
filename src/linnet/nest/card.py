"""A model card: what `nest.toml` says, checked and frozen. Reading one runs nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CARD_NAME = "nest.toml"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where the program is: a file relative to the card, its root block and usual entry."""

    path: str
    root: str | None
    entry: str | None


@dataclass(frozen=True, slots=True)
class WeightSpec:
    """Where the weights are.

    Either `repo` (a Hub repository at `revision`), or `pypi` (`dist==version`, a wheel that is read
    as an archive), or neither: the files lie beside the card. `sha256` has one entry for each
    file, or none; with `pypi` it is required.
    """

    files: tuple[str, ...]
    repo: str | None = None
    revision: str | None = None
    pypi: str | None = None
    sha256: tuple[str, ...] = ()
    bindings: str | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A model folder's card. `folder` is where it lies; `fetched` says it came from a stranger."""

    folder: Path
    name: str
    title: str
    summary: str
    license: str
    family: str
    tags: tuple[str, ...]
    links: Mapping[str, str]
    source: SourceSpec
    generics: Mapping[str, int | str]
    check: Mapping[str, int]
    weights: WeightSpec | None
    fetched: bool = field(default=False)

    @classmethod
    def read(cls, folder: str | Path, fetched: bool = False) -> Card:
        """The card of a model folder. Raises `NestError` (E5020) with every problem it has."""
        from linnet.nest.card_reader import read_card

        return read_card(Path(folder), fetched)

    @property
    def source_path(self) -> Path:
        """The program's file."""
        return self.folder / self.source.path

    @property
    def bindings_path(self) -> Path | None:
        """The bindings' file, if the card has one."""
        if self.weights is None or self.weights.bindings is None:
            return None
        return self.folder / self.weights.bindings
