"""Compilers, and the folder of what they made: private, whole, and one key for one content."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from linnet.native.errors import NativeError
from linnet.native.toolchain import compiler, store
from linnet.native.toolchain.build import build
from linnet.native.toolchain.compiler import find_toolchain
from linnet.native.toolchain.store import content_key, object_file

TEXT = '#include "linnet/support.h"\nextern "C" int answer() { return 42; }\n'


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "cache"))
    find_toolchain.cache_clear()
    yield
    find_toolchain.cache_clear()


def write(folder: Path, file: Path) -> None:
    file.write_bytes(b"object")


def test_an_object_is_made_once_and_only_for_this_user(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(folder: Path, file: Path) -> None:
        made.append(file)
        write(folder, file)

    first, second = object_file("a", make), object_file("a", make)
    assert first == second == tmp_path / "cache" / "native" / f"a{store.SUFFIX}"
    assert len(made) == 1
    assert first.parent.stat().st_mode & 0o077 == 0
    assert sorted(p.name for p in first.parent.iterdir()) == [first.name]


def test_what_others_may_change_is_not_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "native"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert object_file("a", write).parent != folder
    folder.chmod(0o700)
    planted = folder / f"b{store.SUFFIX}"
    planted.write_bytes(b"planted")
    planted.chmod(0o666)
    assert object_file("b", write).read_bytes() == b"object"
    link = folder / f"c{store.SUFFIX}"
    link.symlink_to(planted)
    assert object_file("c", write).read_bytes() == b"object"


def test_a_folder_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "file"))
    made = object_file("a", write)
    assert made.read_bytes() == b"object" and "linnet-native-" in made.parent.name
    assert object_file("a", write) == made


def test_a_failed_compile_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(NativeError, match=r"the compiler failed with exit code 1:\n.*error"):
        build("this is no C++", "exact")
    folder = tmp_path / "cache" / "native"
    assert list(folder.iterdir()) == []


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(NativeError, match="the compiler that CXX names does not run: /nowhere"):
        find_toolchain()
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    with pytest.raises(NativeError, match="install g\\+\\+ or clang\\+\\+, name one with CXX"):
        find_toolchain()


def test_keys_depend_on_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    assert content_key(["ab", "c"]) != content_key(["a", "bc"])
    one = build(TEXT, "exact")
    assert build(TEXT, "exact") == one
    assert build(TEXT + "// more\n", "exact") != one
    monkeypatch.setattr("linnet.native.toolchain.build.cpu_features", lambda: "another processor")
    assert build(TEXT, "exact") != one


def test_several_threads_and_processes_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: build(TEXT, "exact"), range(4)))
    assert len(found) == 1
    code = (
        "import ctypes; from linnet.native.toolchain.build import build; "
        f"print(ctypes.CDLL(str(build({TEXT + '// both'!r}, 'exact'))).answer())"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in running] == [b"42", b"42"]
    left = [p.name for p in (tmp_path / "cache" / "native").iterdir()]
    assert not any(name.startswith(".") for name in left)
