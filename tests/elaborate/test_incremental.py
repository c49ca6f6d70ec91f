"""Checking again after an edit: what depends on it is checked anew, the rest is remembered."""

from __future__ import annotations

from pathlib import Path

from linnet.elaborate import check
from linnet.ir import Program
from linnet.packages import load_sources

BASE = (
    "module toy.base\npub fn half<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] { return x * 0.5 }\n"
)
USER = """module toy
use crate.base::{half}
pub block Net<N: Dim> {
    param weight: Tensor[N; f32]
    entry forward() -> Tensor[N; f32] { return half(weight) }
}
"""


def package(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    toml = '[package]\nname = "toy"\nversion = "0.1.0"\nlanguage = "0.1"\n'
    (folder / "linnet.toml").write_text(toml, encoding="utf-8")
    (folder / "src" / "base.linnet").write_text(BASE, encoding="utf-8")
    (folder / "src" / "lib.linnet").write_text(USER, encoding="utf-8")
    return folder


def run(folder: Path) -> Program:
    return check(load_sources([folder]))


def test_unchanged_functions_are_the_same_objects(tmp_path: Path) -> None:
    folder = package(tmp_path / "toy")
    first, second = run(folder), run(folder)
    assert first.functions == second.functions
    assert not first.diagnostics


def test_an_edit_reaches_its_importers(tmp_path: Path) -> None:
    folder = package(tmp_path / "toy")
    before = run(folder)
    changed = BASE.replace("Tensor[N; f32] {", "Tensor[2 * N; f32] {").replace("x * 0.5", "x")
    (folder / "src" / "base.linnet").write_text(changed, encoding="utf-8")
    broken = run(folder)
    assert {d.code for d in broken.diagnostics} == {"E2202"}
    assert len(broken.diagnostics) == 2  # in the edited file, and in the one that calls it
    (folder / "src" / "base.linnet").write_text(BASE, encoding="utf-8")
    after = run(folder)
    assert not after.diagnostics
    assert before.functions.keys() == after.functions.keys()


def test_an_edit_leaves_the_other_file_alone(tmp_path: Path) -> None:
    folder = package(tmp_path / "toy")
    before = run(folder)
    edited = USER.replace("half(weight)", "weight")
    (folder / "src" / "lib.linnet").write_text(edited, encoding="utf-8")
    after = run(folder)
    assert [d.code for d in after.diagnostics] == ["W1001"]
    name = next(name for name in before.functions if name.endswith("::half"))
    assert before.functions[name] is after.functions[name]
    (folder / "src" / "lib.linnet").write_text(USER, encoding="utf-8")
    assert not run(folder).diagnostics
