"""A model that was loaded before runs without its sources being parsed, never by stale facts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.backends.errors import InputError
from linnet.diagnostics import CompileError
from linnet.native import Model, RunError, load
from linnet.native.runtime import warm
from linnet.native.toolchain import store
from linnet.native.toolchain.compiler import find_toolchain

LAYER = """module toy.layer
use std.nn.cache::{write_at}
use std.nn.linear::{Linear}
pub block Layer<N: Dim, MaxSeq: Dim> {
    sub linear: Linear<N, N, f32>
    state cache: Tensor[1, 1, MaxSeq, N; f32]
    pub fn step(x: Tensor[1, N; f32], pos: i32) -> Tensor[1, N; f32] {
        cache = write_at(cache, reshape(linear.forward(x), [1, 1, 1, N]), pos)
        let total[n] = sum[s] cache[0, 0, s, n]
        return reshape(total, [1, N])
    }
}
"""
LIBRARY = """module toy
use crate.layer::{Layer}
pub block Model<N: Dim, MaxSeq: Dim> {
    sub layer: Layer<N, MaxSeq>
    pub entry step(x: Tensor[1, N; f32], pos: i32) -> Tensor[1, N; f32] {
        return layer.step(x, pos)
    }
    pub entry doubled<S: Dim>(x: Tensor[S; f32]) -> Tensor[S; f32] { return x + x }
}
"""
SIZES: dict[str, int | str] = {"N": 16, "MaxSeq": 4}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "toy"
    (root / "src").mkdir(parents=True)
    (root / "linnet.toml").write_text('[package]\nname = "toy"\nversion = "0.1.0"\n')
    (root / "src" / "lib.linnet").write_text(LIBRARY)
    (root / "src" / "layer.linnet").write_text(LAYER)
    yield root
    find_toolchain.cache_clear()


def loaded(package: Path, **options: Any) -> Model:
    return load(package, generics=SIZES, numerics="exact", **options)


def run(model: Model, pos: int = 1) -> Any:
    return model.run_entry("step", [np.ones((1, 16), np.float32), pos])


def fill(model: Model, value: float = 1.0) -> Model:
    model.parameters["layer.linear.weight"][:] = value
    return model


def test_a_second_load_reads_no_source(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fill(loaded(package))
    want = run(first)
    assert first._front.is_read and want[0, 0] == 16

    def parsed(*args: object) -> None:
        raise AssertionError("the front end ran")

    with monkeypatch.context() as patch:
        patch.setattr("linnet.native.runtime.load.bound", parsed)
        second = fill(loaded(package))
        assert np.array_equal(run(second), want)
        assert second.signature("step") == first.signature("step")
        assert second.generated_source("step") == first.generated_source("step")
        with pytest.raises(InputError, match="`pos` is 4, past the last position of axis MaxSeq"):
            run(second, 4)
        with pytest.raises(InputError, match="is 3, but has to be 16"):
            second.run_entry("step", [np.ones((1, 3), np.float32), 0])
        second.prepare("step")
    # An entry that was not kept, and the program itself, are read now.
    assert second.run_entry("doubled", [[1.0, 2.0]]).tolist() == [2, 4]
    assert second._front.is_read and second.binding.block == "toy::Model"


def test_a_change_anywhere_is_seen(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = warm.program_key(package, None, None, SIZES, None)
    assert key == warm.program_key(str(package), None, None, SIZES, None)
    others = [
        warm.program_key(package, None, "step", SIZES, None),
        warm.program_key(package, "Model", None, SIZES, None),
        warm.program_key(package, None, None, {**SIZES, "N": 8}, None),
    ]
    layer = package / "src" / "layer.linnet"
    layer.write_text(LAYER.replace("sum[s]", "max[s]"))
    others.append(warm.program_key(package, None, None, SIZES, None))
    (package / "src" / "more.linnet").write_text("module toy.more\n")
    others.append(warm.program_key(package, None, None, SIZES, None))
    monkeypatch.setattr(warm, "own_key", lambda: "another version")
    others.append(warm.program_key(package, None, None, SIZES, None))
    assert len({key, *others}) == 7


def test_a_changed_dependency_is_seen(tmp_path: Path) -> None:
    for name, needs in (("a", '\n[dependencies]\nb = { path = "../b" }\n'), ("b", "")):
        folder = tmp_path / name / "src"
        folder.mkdir(parents=True)
        (folder / "lib.linnet").write_text(f"module {name}\n")
        (tmp_path / name / "linnet.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "0.1.0"\n{needs}'
        )
    before = warm.source_key(tmp_path / "a", None)
    (tmp_path / "b" / "src" / "lib.linnet").write_text("module b\n// changed\n")
    after = warm.source_key(tmp_path / "a", None)
    assert before is not None and after is not None and before != after


def test_what_is_no_package_or_broken_is_left_to_the_front_end(tmp_path: Path) -> None:
    assert warm.source_key(tmp_path / "nothing.linnet", None) is None
    (tmp_path / "linnet.toml").write_text("[package")
    (tmp_path / "m.linnet").write_text("module m\n")
    assert warm.source_key(tmp_path / "m.linnet", None) is None


def test_a_change_of_linnet_itself_is_seen(tmp_path: Path) -> None:
    """By contents: an unpacked archive's files may have one size and one time in two versions."""
    root = tmp_path / "linnet"
    (root / "stdlib" / "nn").mkdir(parents=True)
    file = root / "stdlib" / "nn" / "activations.linnet"
    file.write_text("max(x, 0.0)")
    os.utime(file, (1, 1))
    before = warm.files_key(root)
    assert warm.files_key(root) == before
    (root / "notes.txt").write_text("no part of it")
    assert warm.files_key(root) == before
    file.write_text("max(x, 7.0)")
    os.utime(file, (1, 1))
    assert warm.files_key(root) != before


def test_damaged_or_foreign_facts_are_not_used(package: Path) -> None:
    want = run(fill(loaded(package)))
    folder = store.cache_folder()
    for path in folder.glob("*.facts"):
        path.write_bytes(path.read_bytes()[:-40])
        path.chmod(0o600)
    again = fill(loaded(package))
    assert again._front.is_read and np.array_equal(run(again), want)
    for path in folder.glob("*.facts"):
        path.chmod(0o666)
    assert loaded(package)._front.is_read


def test_a_compiled_object_that_is_gone_is_made_again(package: Path) -> None:
    want = run(fill(loaded(package)))
    for path in store.cache_folder().glob(f"*{store.SUFFIX}"):
        path.unlink()
    again = fill(loaded(package))
    assert not again._front.is_read  # its facts are there
    assert np.array_equal(run(again), want)


def test_a_library_that_is_not_there_is_none(package: Path) -> None:
    fill(loaded(package))
    with pytest.raises(CompileError, match="E1202"):
        loaded(package, std_root=package / "nowhere")


def test_a_message_names_the_file_that_was_loaded(tmp_path: Path) -> None:
    """The same text in another place is compiled with its own place in its messages."""
    text = """module look
pub entry main<N: Dim>(x: Tensor[N; f32], at: Tensor[2; f32]) -> Tensor[2; f32] {
    let chosen = cast<i32>(at)
    let y[i] = x[chosen[i]]
    return y
}
"""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "look.linnet"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(RunError, match=re.escape(str(Path(name, "look.linnet")))):
            load(file, entry="main")(np.zeros(3, np.float32), np.array([0, 5], np.float32))
