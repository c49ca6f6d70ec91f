"""Finding a C++ compiler, and the flags for it.

`CXX`, then g++, then clang++, the first that answers `--version`; else PyPI's `ziglang`, whose
version is that of the package, as asking it takes seconds.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from linnet.diagnostics.escape import escape_text
from linnet.native.errors import NativeError
from linnet.native.toolchain.jobs import run_command

COMPILE_SECONDS = 600
_VERSION_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler's command and what it says it is."""

    command: tuple[str, ...]
    version: str

    @property
    def is_zig(self) -> bool:
        return "ziglang" in self.command or Path(self.command[0]).name.startswith("zig")

    def flags(self, numerics: str, march: str | None = "native") -> tuple[str, ...]:
        """Flags for generated code. Sums are only reordered where the source says so, and a
        product and a sum are joined into one rounding under `fast` numerics alone."""
        contract = "fast" if numerics == "fast" else "off"
        found = [
            "-std=c++17", "-O2", "-fPIC", "-fopenmp-simd", f"-ffp-contract={contract}",
            "-fno-math-errno", "-fno-trapping-math", "-w",
        ]  # fmt: skip
        if march is not None and platform.machine() in ("x86_64", "AMD64"):
            found.append(f"-march={march}")
        if self.is_zig:
            found.append("-fno-sanitize=undefined")
        return tuple(found)


@cache
def find_toolchain() -> Toolchain:
    """The compiler of this machine. Raises `NativeError` where there is none."""
    named = os.environ.get("CXX")
    if named:
        found = _try(_words(named))
        if found is None:
            raise NativeError(
                f"the compiler that CXX names does not run: {escape_text(named, 200)}"
            )
        return found
    for name in ("g++", "clang++"):
        path = shutil.which(name)
        found = _try((path,)) if path else None
        if found is not None:
            return found
    if find_spec("ziglang") is not None:
        return _zig((sys.executable, "-m", "ziglang", "c++"))
    raise NativeError(
        "the native backend needs a C++ compiler and found none: install g++ or clang++, "
        "name one with CXX, or `pip install ziglang`"
    )


def _words(named: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(named))
    except ValueError as error:  # a quote that is not closed
        shown = escape_text(named, 200)
        raise NativeError(f"CXX is no command: {str(error).lower()} in `{shown}`") from None


def _zig(command: tuple[str, ...]) -> Toolchain:
    try:
        return Toolchain(command, f"ziglang {metadata.version('ziglang')}")
    except metadata.PackageNotFoundError:
        return _try(command) or Toolchain(command, "ziglang")


def _try(command: tuple[str, ...]) -> Toolchain | None:
    if not command:
        return None
    try:
        answer = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return Toolchain(command, answer.stdout.strip()[:400]) if answer.returncode == 0 else None


def run_compiler(toolchain: Toolchain, arguments: list[str], folder: Path, made: Path) -> None:
    """One run of the compiler, which is to write the file `made`. Raises `NativeError` with what
    it said."""
    command = [*toolchain.command, "-o", str(made), *arguments]
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        code, said = run_command(command, folder, environment, COMPILE_SECONDS)
    except subprocess.TimeoutExpired:
        raise NativeError(f"the compiler ran for over {COMPILE_SECONDS} seconds") from None
    except OSError as error:
        raise NativeError(f"the compiler cannot be run: {error.strerror}") from None
    if code != 0:
        heard = [line for line in said.splitlines() if line.strip()]
        lines = "\n".join(escape_text(line, 400) for line in heard[:12])
        raise NativeError(f"the compiler failed with exit code {code}:\n{lines}")
    _check_made(toolchain, made)


def _check_made(toolchain: Toolchain, made: Path) -> None:
    """A command that is no compiler may well exit as if all had gone well."""
    if not made.is_file() or made.stat().st_size == 0:
        command = escape_text(shlex.join(toolchain.command), 200)
        raise NativeError(
            f"the compiler `{command}` ended without an error, but wrote nothing to {made.name}: "
            "name another one with CXX"
        )


@cache
def cpu_flags() -> frozenset[str]:
    """This x86-64 processor's instruction sets by the names that Linux has; none elsewhere."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    return frozenset(cpu_features().split())


@cache
def cpu_features() -> str:
    """What this processor can do, as text that differs where machine code must."""
    parts = [platform.system(), platform.machine()]
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features", "model name", "cpu family", "model"):
                parts.append(value.strip())
            if not line.strip() and len(parts) > 2:
                break
    except OSError:
        parts += [platform.processor(), platform.version()]
    return "\n".join(parts)
