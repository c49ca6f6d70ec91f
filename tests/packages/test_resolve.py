"""Logical module paths: where they lead, and that they lead nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linnet.diagnostics import Diagnostic
from linnet.packages import Package, Resolved, find_package, resolve_module
from linnet.packages.package import library_package

from .conftest import Write

MANIFEST = '[package]\nname = "toy"\n[dependencies]\nother = { path = "../other" }\n'
OTHER = '[package]\nname = "third"\n'


@pytest.fixture
def home(write: Write) -> Path:
    return write(
        {
            "toy/linnet.toml": MANIFEST,
            "toy/src/lib.linnet": "",
            "toy/src/deep/attention.linnet": "",
            "other/linnet.toml": OTHER,
            "other/src/lib.linnet": "",
            "other/src/rope.linnet": "",
            "std/nn/linear.linnet": "",
            "secret.linnet": "",
        }
    ).resolve()


def toy(home: Path) -> Package:
    package = find_package(home / "toy/src/lib.linnet")
    assert package is not None
    return package


def resolve(home: Path, path: str, *, lone: bool = False) -> Resolved | Diagnostic:
    package = None if lone else toy(home)
    return resolve_module(path.split("."), package, library_package(home / "std"))


def failure(home: Path, path: str, *, lone: bool = False) -> Diagnostic:
    found = resolve(home, path, lone=lone)
    assert isinstance(found, Diagnostic), found
    return found


@pytest.mark.parametrize(
    ("path", "file", "package"),
    [
        ("crate", "toy/src/lib.linnet", "toy"),
        ("crate.deep.attention", "toy/src/deep/attention.linnet", "toy"),
        ("other", "other/src/lib.linnet", "third"),
        ("other.rope", "other/src/rope.linnet", "third"),
        ("std.nn.linear", "std/nn/linear.linnet", "std"),
    ],
)
def test_a_path_leads_to_its_file(home: Path, path: str, file: str, package: str) -> None:
    found = resolve(home, path)
    assert isinstance(found, Resolved)
    assert found.path == home / file
    assert found.package.name == package


def test_a_lone_file_imports_only_the_library(home: Path) -> None:
    assert isinstance(resolve(home, "std.nn.linear", lone=True), Resolved)
    for path in ("crate", "crate.deep.attention", "other.rope"):
        found = failure(home, path, lone=True)
        assert found.code == "E1202"
        assert "outside a package" in found.message


def test_a_misspelt_module_names_its_neighbour(home: Path) -> None:
    found = failure(home, "crate.deep.atention")
    assert (found.code, found.help) == ("E1202", "did you mean `crate.deep.attention`?")
    assert failure(home, "std.nn.liner").help == "did you mean `std.nn.linear`?"
    assert failure(home, "othr.rope").help == "did you mean `other.rope`?"


def test_an_item_taken_for_a_module_is_explained(home: Path) -> None:
    found = failure(home, "std.nn.linear.Linear")
    assert found.help is not None
    assert "use std.nn.linear::{Linear}" in found.help


def test_the_packages_own_name_is_crate(home: Path) -> None:
    assert failure(home, "toy.deep.attention").help == (
        "write `crate.deep.attention` for a module of this package"
    )


@pytest.mark.parametrize(
    "parts",
    [
        [],
        ["crate", ".."],
        ["crate", "..", "..", "secret"],
        ["crate", "/etc/passwd"],
        ["crate", "a/b"],
        ["crate", "a\0"],
        ["crate", "x" * 5000],
        ["crate", *["x"] * 5000],
        ["crate", "x" * 199],
        ["crate", *["x" * 190] * 60],
    ],
)
def test_strange_paths_are_refused(home: Path, parts: list[str]) -> None:
    found = resolve_module(parts, toy(home), library_package(home / "std"))
    assert isinstance(found, Diagnostic)
    assert found.code == "E1202"


def test_links_do_not_lead_out(home: Path) -> None:
    source = home / "toy/src"
    (source / "leak.linnet").symlink_to(home / "secret.linnet")
    (source / "up").symlink_to(home)
    (source / "round.linnet").symlink_to(source / "round.linnet")
    (source / "alias.linnet").symlink_to(source / "deep/attention.linnet")
    assert "through a link" in failure(home, "crate.leak").message
    assert "through a link" in failure(home, "crate.up.secret").message
    assert failure(home, "crate.round").code == "E1202"
    inside = resolve(home, "crate.alias")
    assert isinstance(inside, Resolved)
    assert inside.path == source / "deep/attention.linnet"


def test_a_source_folder_that_is_a_link_out_is_refused(home: Path) -> None:
    package = toy(home)
    (home / "toy/src").rename(home / "elsewhere")
    (home / "toy/src").symlink_to(home / "elsewhere")
    found = resolve_module(["crate"], package, library_package(home / "std"))
    assert isinstance(found, Diagnostic)
    assert "through a link" in found.message


def test_folders_and_pipes_are_no_modules(home: Path) -> None:
    (home / "toy/src/folder.linnet").mkdir()
    assert "not a file" in failure(home, "crate.folder").message
    os.mkfifo(home / "toy/src/pipe.linnet")
    assert "not a file" in failure(home, "crate.pipe").message


def test_a_broken_dependency_is_reported_with_its_reason(home: Path) -> None:
    (home / "other/linnet.toml").write_text("[package]\n")
    found = failure(home, "other.rope")
    assert found.code == "E5001"
    assert "no `name`" in found.notes[0]
    (home / "other/linnet.toml").unlink()
    assert "does not exist" in failure(home, "other.rope").notes[0]
