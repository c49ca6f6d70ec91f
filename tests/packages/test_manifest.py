"""`linnet.toml`: what it says, and what is said about a broken one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linnet.diagnostics import CompileError, Diagnostic
from linnet.packages import find_package, read_package

GOOD = '[package]\nname = "toy"\nversion = "0.1.0"\nlanguage = "0.1"\n'


def problems(folder: Path, text: str | bytes) -> tuple[Diagnostic, ...]:
    data = text.encode() if isinstance(text, str) else text
    (folder / "linnet.toml").write_bytes(data)
    package, found = read_package(folder)
    assert package.name
    assert all(each.code == "E5001" for each in found)
    return found


def only(folder: Path, text: str | bytes) -> Diagnostic:
    (found,) = problems(folder, text)
    return found


def test_a_package_is_read(tmp_path: Path) -> None:
    (tmp_path / "linnet.toml").write_text(GOOD + '[dependencies]\nshared = { path = "../x" }\n')
    package, found = read_package(tmp_path)
    assert not found
    assert (package.name, package.version, package.language) == ("toy", "0.1.0", "0.1")
    assert package.root == tmp_path.resolve()
    assert package.source == tmp_path.resolve() / "src"
    dependency = package.dependency("shared")
    assert dependency is not None
    assert dependency.path == (tmp_path / "../x").resolve()
    assert package.dependency("other") is None


def test_version_and_language_may_be_left_out(tmp_path: Path) -> None:
    assert not problems(tmp_path, '[package]\nname = "toy"\n')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no `[package]` table"),
        ("package = 3\n", "has no `[package]` table"),
        ("[package]\n", "has no `name`"),
        ('[package]\nname = "my model"\n', "`name` must be"),
        ("[package]\nname = 3\n", "`name` must be"),
        ('[package]\nname = "std"\n', "may not be named `std`"),
        (f'[package]\nname = "{"x" * 101}"\n', "`name` must be"),
        ('[package]\nname = "a"\nversion = 1\n', "`version` must be"),
        ('[package]\nname = "a"\nlanguage = "9"\n', "reads language"),
        (GOOD + "[dependencies]\na = 3\n", "`a` has no `path`"),
        (GOOD + '[dependencies]\na = { path = "/etc" }\n', "absolute path"),
        (GOOD + '[dependencies]\nstd = { path = "x" }\n', "cannot be a dependency's key"),
        (GOOD + '[dependencies]\na = { path = "x", git = "y" }\n', "`git` is not a key"),
        ("dependencies = 3\n" + GOOD, "must be a table"),
        ("[package\n", "is not valid TOML"),
        ("x = " + "[" * 100_000, "nests deeper"),
        (b"\xff\xfe", "not UTF-8"),
        (b"\0", "NUL"),
        ("x = " + "9" * 10_000, "cannot be read"),
    ],
)
def test_a_broken_manifest_is_one_clear_report(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    assert words in only(tmp_path, text).message


def test_reports_point_at_their_line(tmp_path: Path) -> None:
    found = only(tmp_path, '[package]\nname = "a"\nlanguage = "9"\n')
    assert found.span is not None
    assert found.span.file.position(found.span.start) == (3, 1)
    assert found.span.text == "language"
    broken = only(tmp_path, '[package]\nname = "a\n')
    assert broken.span is not None
    assert broken.span.line == 2


def test_a_misspelt_key_names_its_neighbour(tmp_path: Path) -> None:
    found = only(tmp_path, GOOD + "[dependancies]\n")
    assert found.help == "did you mean `dependencies`?"
    found = only(tmp_path, '[package]\nname = "a"\nlangauge = "0.1"\n')
    assert found.help == "did you mean `language`?"


def test_every_problem_is_reported(tmp_path: Path) -> None:
    found = problems(tmp_path, "[package]\nname = 1\nversion = 2\nlanguage = 3\nx = 4\n")
    assert len(found) == 4


def test_a_huge_manifest_is_not_read(tmp_path: Path) -> None:
    assert "bytes" in only(tmp_path, "#" * 300_000).message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "linnet.toml")
    _, found = read_package(tmp_path)
    assert "a named pipe" in found[0].message


def test_a_manifest_that_is_a_link_out_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("root:x")
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/linnet.toml").symlink_to(tmp_path / "secret")
    _, found = read_package(tmp_path / "toy")
    assert "link out of its package" in found[0].message


def test_find_package_goes_upward(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "linnet.toml").write_text(GOOD)
    found = find_package(inner / "lib.linnet")
    assert found is not None
    assert found.root == (tmp_path / "outer").resolve()
    (tmp_path / "outer" / "inner" / "linnet.toml").write_text("[package]\n")
    with pytest.raises(CompileError, match="E5001"):
        find_package(inner / "lib.linnet")
    assert find_package(tmp_path / "lone.linnet") is None
