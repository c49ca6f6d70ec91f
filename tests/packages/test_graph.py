"""The import graph: order, cycles, identities, and files that are not what they should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linnet.packages import ModuleGraph, load_sources

from .conftest import Write

MANIFEST = '[package]\nname = "toy"\n'


def codes(graph: ModuleGraph) -> list[str]:
    return [each.code for each in graph.diagnostics]


def test_imported_modules_come_before_importers(write: Write) -> None:
    root = write(
        {
            "linnet.toml": MANIFEST,
            "src/lib.linnet": "module toy\nuse crate.b\nuse crate.a\nuse std.x\n",
            "src/a.linnet": "module toy.a\nuse crate.inner.c\n",
            "src/b.linnet": "module toy.b\nuse crate.a\n",
            "src/inner/c.linnet": "module toy.inner.c\n",
            "std/x.linnet": "module std.x\n",
        }
    )
    graph = load_sources([root / "src/lib.linnet"], root / "std")
    assert not graph.diagnostics
    assert list(graph.modules) == ["toy.inner.c", "toy.a", "toy.b", "std.x", "toy"]
    assert graph.roots == ("toy",)
    lib = graph.modules["toy"]
    assert lib.imports == {0: "toy.b", 1: "toy.a", 2: "std.x"}
    assert lib.package is not None
    assert lib.package.name == "toy"
    assert lib.path == (root / "src/lib.linnet").resolve()


def test_a_folder_stands_for_its_sources(write: Write) -> None:
    root = write(
        {
            "pkg/linnet.toml": MANIFEST,
            "pkg/src/lib.linnet": "module toy\n",
            "pkg/src/a/b.linnet": "module toy.a.b\n",
            "pkg/notes.linnet": "module notes\n",
            "pkg/src/.hidden/c.linnet": "module c\n",
            "loose/one.linnet": "module one\n",
            "empty/readme.md": "",
        }
    )
    graph = load_sources([root / "pkg"])
    assert sorted(graph.roots) == ["toy", "toy.a.b"]
    assert load_sources([root / "loose"]).roots == ("one",)
    empty = load_sources([root / "empty"])
    assert (codes(empty), empty.roots) == (["E1202"], ())


def test_a_cycle_is_named_once(write: Write) -> None:
    root = write(
        {
            "linnet.toml": MANIFEST,
            "src/lib.linnet": "module toy\nuse crate.a\n",
            "src/a.linnet": "module toy.a\nuse crate.b\n",
            "src/b.linnet": "module toy.b\nuse crate.a\n",
            "src/me.linnet": "module toy.me\nuse crate.me\n",
        }
    )
    graph = load_sources([root / "src/lib.linnet"])
    (found,) = graph.diagnostics
    assert found.code == "E1206"
    assert "`toy.a` -> `toy.b` -> `toy.a`" in found.message
    assert found.span is not None
    assert found.span.file.path.endswith("b.linnet")
    assert [label.message for label in found.related] == ["`toy.a` imports `toy.b` here"]
    assert graph.modules["toy.b"].imports == {}
    assert list(graph.modules) == ["toy.b", "toy.a", "toy"]
    (alone,) = load_sources([root / "src/me.linnet"]).diagnostics
    assert "imports itself" in alone.message


def test_a_long_chain_of_imports_is_no_trouble(write: Write) -> None:
    count = 1500
    files = {f"src/m{i}.linnet": f"module toy.m{i}\nuse crate.m{i + 1}\n" for i in range(count)}
    root = write({"linnet.toml": MANIFEST, **files, f"src/m{count}.linnet": "module last\n"})
    graph = load_sources([root / "src/m0.linnet"])
    assert not graph.diagnostics
    assert len(graph.modules) == count + 1


def test_one_file_has_one_id_and_packages_of_one_name_are_told_apart(write: Write) -> None:
    root = write(
        {
            "a/linnet.toml": MANIFEST + '[dependencies]\nb = { path = "../b" }\n'
            'me = { path = "../a" }\n',
            "a/src/lib.linnet": "module toy\nuse crate.x\nuse b.x\nuse me.x\nuse b\n",
            "a/src/x.linnet": "module toy.x\n",
            "b/linnet.toml": MANIFEST,
            "b/src/lib.linnet": "module toy\nuse crate.x\n",
            "b/src/x.linnet": "module toy.x\n",
        }
    )
    graph = load_sources([root / "a"])
    assert not graph.diagnostics
    assert graph.modules["toy"].imports == {0: "toy.x", 1: "toy.x#2", 2: "toy.x", 3: "toy#2"}
    assert graph.modules["toy#2"].imports == {0: "toy.x#2"}


def test_a_lone_file_cannot_take_a_library_name(write: Write) -> None:
    root = write({"std.nn.linear.linnet": "module x\n", "std.linnet": "module x\n"})
    graph = load_sources([root / "std.nn.linear.linnet", root / "std.linnet"], root / "none")
    assert graph.roots == ("std_nn_linear", "_std")


def test_a_second_load_parses_only_what_changed(write: Write) -> None:
    root = write(
        {
            "linnet.toml": MANIFEST,
            "src/lib.linnet": "module toy\nuse crate.a\n",
            "src/a.linnet": "module toy.a\n",
        }
    )
    first = load_sources([root])
    (root / "src/a.linnet").write_text("module toy.b\n")
    second = load_sources([root])
    assert second.modules["toy"].tree is first.modules["toy"].tree
    assert second.modules["toy.a"].tree is not first.modules["toy.a"].tree
    assert second.modules["toy.a"].file.text == "module toy.b\n"


def test_a_broken_manifest_is_reported_once_and_imports_still_work(write: Write) -> None:
    root = write(
        {
            "pkg/linnet.toml": "[package]\n",
            "pkg/src/lib.linnet": "module pkg\nuse crate.a\n",
            "pkg/src/a.linnet": "module pkg.a\n",
        }
    )
    graph = load_sources([root / "pkg"])
    assert codes(graph) == ["E5001"]
    assert graph.modules["pkg"].imports == {0: "pkg.a"}


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"module x\n// \xff\xfe\xfd\n", "E1001", "byte 0xff"),
        (b"module x\0\n", "E1001", "NUL"),
        (b"a" * (4 * 1024 * 1024 + 1), "E1202", "more than"),
    ],
)
def test_a_file_that_is_no_source_is_one_report(
    write: Write, data: bytes, code: str, words: str
) -> None:
    root = write({"linnet.toml": MANIFEST, "src/lib.linnet": "module toy\nuse crate.a\n"})
    (root / "src/a.linnet").write_bytes(data)
    for target in (root / "src/a.linnet", root / "src/lib.linnet", root):
        (found,) = load_sources([target]).diagnostics
        assert found.code == code
        assert words in found.message


def test_the_place_of_a_bad_byte_is_shown(write: Write) -> None:
    root = write({})
    (root / "a.linnet").write_bytes("module x\n// é\n  ".encode() + b"\xe9\n")
    (found,) = load_sources([root / "a.linnet"]).diagnostics
    assert found.span is not None
    assert found.span.file.position(found.span.start) == (3, 3)
    assert found.span.file.byte_offset(found.span.start) == 17


def test_missing_and_strange_roots_are_reported(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.linnet")
    (tmp_path / "loop.linnet").symlink_to(tmp_path / "loop.linnet")
    for name, words in [
        ("none.linnet", "does not exist"),
        ("pipe.linnet", "a named pipe"),
        ("loop.linnet", "links"),
    ]:
        (found,) = load_sources([tmp_path / name]).diagnostics
        assert found.code == "E1202"
        assert words in found.message


def test_links_out_of_a_checked_folder_are_left_alone(write: Write) -> None:
    root = write({"pkg/a.linnet": "module a\n", "out/b.linnet": "module b\n"})
    (root / "pkg/b.linnet").symlink_to(root / "out/b.linnet")
    (root / "pkg/out").symlink_to(root / "out")
    assert load_sources([root / "pkg"]).roots == ("a",)


def test_a_boundary_holds_dependencies_in(write: Write) -> None:
    root = write(
        {
            "card/linnet.toml": MANIFEST + '[dependencies]\nout = { path = "../other" }\n',
            "card/src/lib.linnet": "module toy\nuse out\n",
            "other/linnet.toml": '[package]\nname = "other"\n',
            "other/src/lib.linnet": "module other\n",
        }
    )
    assert not load_sources([root / "card"]).diagnostics
    (found,) = load_sources([root / "card"], boundary=root / "card").diagnostics
    assert found.code == "E1202"
    assert "leads out" in found.message
