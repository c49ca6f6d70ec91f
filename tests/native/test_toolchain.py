"""Compilers, and the folder of what they made: private, whole, and one key for one content."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from linnet.native.errors import NativeError
from linnet.native.runtime.code import load_symbols
from linnet.native.toolchain import compiler, kernels, loading, store
from linnet.native.toolchain.build import build
from linnet.native.toolchain.compiler import find_toolchain
from linnet.native.toolchain.store import content_key, object_file

pytestmark = pytest.mark.usefixtures("empty_cache")
TEXT = '#include "linnet/support.h"\nextern "C" int answer() { return 42; }\n'


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
    assert sorted(p.name for p in first.parent.iterdir()) == [first.name, first.name + store.SUM]


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
    monkeypatch.setenv("CXX", "g++ '")
    with pytest.raises(NativeError, match="CXX is no command: no closing quotation in `g\\+\\+ '`"):
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


def damaged(path: Path, how: str) -> None:
    """Changes a file of the cache, as a failing disk might."""
    data = bytearray(path.read_bytes())
    if how == "altered":
        data[len(data) // 2] ^= 1
    path.write_bytes(data[: {"empty": 0, "cut": len(data) // 2}.get(how, len(data))])
    beside = path.with_name(path.name + store.SUM)
    if how == "alone":
        beside.unlink()
    elif how == "sum":
        beside.write_text("0" * 64)
    elif how == "open":
        beside.chmod(0o666)


@pytest.mark.parametrize("how", ["empty", "cut", "altered", "alone", "sum", "open"])
def test_a_damaged_file_is_made_again(how: str) -> None:
    made = object_file("a", write)
    damaged(made, how)
    assert store.stored_file("a") is None
    assert object_file("a", write) == made and made.read_bytes() == b"object"
    assert store.stored_file("a") == made


def test_a_cut_object_is_compiled_again() -> None:
    """Which the system would map, and then end the process where it reads past the cut."""
    made = build(TEXT, "exact")
    damaged(made, "cut")
    assert loading.open_object(build(TEXT, "exact")).answer() == 42


def test_damaged_kernels_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their file is found by its name alone: the compile itself is not repeated here."""
    monkeypatch.setattr(kernels, "_compile", lambda toolchain, folder, file: write(folder, file))
    monkeypatch.setattr(kernels, "kernels_name", lambda: "kernels-x")
    kernels._kernels_object.cache_clear()
    made = kernels._kernels_object()
    damaged(made, "cut")
    kernels._kernels_object.cache_clear()
    assert kernels._kernels_object() == made and made.read_bytes() == b"object"
    kernels._kernels_object.cache_clear()


@pytest.mark.parametrize("suffix", [store.SUFFIX, store.SUFFIX + store.SUM])
def test_a_folder_in_an_objects_place_is_no_obstacle(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "cache" / "native" / f"a{suffix}" / "something").mkdir(parents=True)
    (tmp_path / "cache" / "native").chmod(0o700)
    made = object_file("a", write)
    assert made.read_bytes() == b"object" and "linnet-native-" in made.parent.name
    made.unlink()


@pytest.mark.parametrize("kind", ["nothing", "empty"])
def test_a_compiler_that_writes_nothing_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "compiler"
    touch = (
        'while [ $# -gt 0 ]; do [ "$1" = -o ] && : > "$2"; shift; done' if kind == "empty" else ""
    )
    script.write_text(f"#!/bin/sh\n{touch}\nexit 0\n")
    script.chmod(0o700)
    monkeypatch.setenv("CXX", f"{script} hi")
    with pytest.raises(
        NativeError, match=r"compiler hi` ended without an error, but wrote nothing"
    ):
        build(TEXT, "exact")
    assert list((tmp_path / "cache" / "native").iterdir()) == []


def test_a_full_disk_is_no_obstacle_until_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, tried = tmp_path / "cache" / "native", list[Path]()

    def full(work: Path, file: Path) -> None:
        tried.append(work.parent)
        if work.parent == folder and len(tried) == 1:
            raise OSError(28, "No space left on device")
        if work.parent == folder:
            raise NativeError("the compiler failed:\n/x.o: No space left on device")
        write(work, file)

    for name in ("full-1", "full-2"):
        made = object_file(name, full)
        assert made.read_bytes() == b"object" and "linnet-native-" in made.parent.name
    assert tried[0] == tried[2] == folder and list(folder.iterdir()) == []

    def never(work: Path, file: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(
        NativeError, match=r"neither in `.*native`: No space left.*temporary folder: No"
    ):
        object_file("full-3", never)


def test_what_the_system_does_not_load_is_named(tmp_path: Path) -> None:
    junk = tmp_path / "junk.so"
    junk.write_bytes(b"junk")
    with pytest.raises(
        NativeError, match=r"code in `.*junk.so` cannot be loaded \(.*remove that file"
    ):
        loading.open_object(junk)
    with pytest.raises(NativeError, match="it has no `linnet_open`"):
        load_symbols(build(TEXT, "exact"))


@pytest.mark.parametrize("name", ["a $ORIGIN", "${LIB}", "caf\udce9"])
def test_a_folder_that_the_loader_would_misread_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / name))
    with pytest.raises(
        NativeError, match=r"cannot be loaded from `.*name another folder with LINNET"
    ):
        object_file("a", write)
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "a $5,: b"))
    assert loading.open_object(build(TEXT, "exact")).answer() == 42


def test_an_instruction_set_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINNET_ISA", "rubbish")
    with pytest.raises(NativeError, match=r"LINNET_ISA is one of portable, .*, not `rubbish`"):
        kernels.left_out()


def test_what_nobody_has_used_for_long_goes(tmp_path: Path) -> None:
    old, used = object_file("old", write), object_file("used", write)
    before = time.time() - 2 * store.UNUSED_SECONDS
    for path in (old, used):
        os.utime(path, (before, before))
    assert store.stored_file("used") == used
    object_file("new", write)
    assert store.stored_file("old") is None and store.stored_file("used") == used


def test_a_cache_on_a_read_only_system_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache" / "native"
    folder.mkdir(parents=True, mode=0o700)
    real = store.tempfile.mkdtemp

    def refused(*args: object, **named: object) -> str:
        if named.get("dir") == folder:
            raise OSError(30, "Read-only file system")
        return real(*args, **named)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(store.tempfile, "mkdtemp", refused)
    made = build(TEXT, "exact")
    assert "linnet-native-" in made.parent.name and list(folder.iterdir()) == []


def test_a_foreign_file_of_another_user_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = object_file("a", write)
    assert store.stored_file("a") == made
    monkeypatch.setattr(store.os, "getuid", lambda: made.stat().st_uid + 1)
    assert store.stored_file("a") is None
    assert object_file("a", write).parent != made.parent


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        ("", set()),
        ("sse2", {"avx2", "avx512", "vnni", "bf16", "amx"}),
        ("avx2 fma f16c", {"avx512", "vnni", "bf16", "amx"}),
        ("avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni", {"avx2", "bf16", "amx"}),
        (
            "avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni avx512_bf16",
            {"avx2", "avx512", "vnni", "amx"},
        ),
    ],
)
def test_kernels_that_this_processor_never_runs_are_not_compiled(
    flags: str, left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LINNET_ISA", raising=False)
    monkeypatch.setattr(kernels, "cpu_flags", lambda: frozenset(flags.split()))
    assert kernels.left_out() == left
    kernels.kernels_key.cache_clear()
    lean = kernels.kernels_key()
    monkeypatch.setenv("LINNET_ISA", "avx2")  # any may be asked for
    assert kernels.left_out() == set()
    kernels.kernels_key.cache_clear()
    assert (kernels.kernels_key() == lean) is (not left)
    kernels.kernels_key.cache_clear()


def test_the_packaged_compiler_is_known_without_being_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    package = tmp_path / "site" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('run')", encoding="utf-8")
    about = tmp_path / "site" / "ziglang-1.2.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: ziglang\nVersion: 1.2.3\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = find_toolchain()
    assert found.version == "ziglang 1.2.3" and found.is_zig
    assert found.command == (sys.executable, "-m", "ziglang", "c++")
