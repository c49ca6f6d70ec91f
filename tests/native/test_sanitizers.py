"""Generated code under AddressSanitizer and UBSan: the other tests again, in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from linnet.native import NativeError
from linnet.native.toolchain.compiler import find_toolchain

HERE = Path(__file__).parent


def library(name: str) -> str | None:
    """A sanitizer's run-time library, which has to be there before Python itself starts."""
    try:
        command = find_toolchain().command
    except NativeError:
        return None
    found = subprocess.run(
        [*command, f"-print-file-name={name}"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return found if Path(found).is_absolute() and Path(found).exists() else None


# The native part of the matrix of all backends, and this backend's own programs.
RUNS = [(HERE.parent / "matrix", "native"), (HERE / "test_programs.py", "test")]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "chosen"), RUNS, ids=[path.name for path, _ in RUNS])
def test_without_undefined_behaviour(path: Path, chosen: str) -> None:
    preloaded = [library("libasan.so"), library("libubsan.so")]
    if None in preloaded:
        pytest.skip("the compiler has no sanitizers")
    environment = {
        **os.environ, "LINNET_SANITIZE": "1", "LD_PRELOAD": ":".join(map(str, preloaded)),
        "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-k", chosen, str(path)],
        cwd=HERE.parent.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
