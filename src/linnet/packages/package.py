"""A package: a folder with a `linnet.toml`, or the standard library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linnet.packages.files import real_path

LIBRARY_NAME = "std"


@dataclass(frozen=True, slots=True)
class Dependency:
    """`key = { path = "..." }`; `path` is the other package's folder, links resolved."""

    key: str
    path: Path


@dataclass(frozen=True, slots=True)
class Package:
    """One package's name and places. `root` has its links resolved.

    `source` is the folder module paths start from: `src` under the root, or the root itself for
    the standard library.
    """

    root: Path
    name: str
    version: str = "0.0.0"
    language: str = "0.1"
    dependencies: tuple[Dependency, ...] = ()

    @property
    def source(self) -> Path:
        return self.root if self.is_library else self.root / "src"

    @property
    def is_library(self) -> bool:
        return self.name == LIBRARY_NAME

    def dependency(self, key: str) -> Dependency | None:
        return next((each for each in self.dependencies if each.key == key), None)


def library_package(root: Path) -> Package:
    """The standard library at `root` as a package named `std`."""
    return Package(real_path(root), LIBRARY_NAME)
