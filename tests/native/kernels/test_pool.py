"""The pool: every task once, whoever calls, however many threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.native import kernels as sources

from .conftest import address, i64, library


def count(lib: Any, n: int) -> None:
    """Each of `n` tasks runs two of its own; where `n` is 1, these are shared out."""
    y = np.zeros((n, 2), np.int32)
    lib.linnet_k_count(i64(n), address(y))
    assert (y == 1).all()


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_task_runs_once(loaded: Any, threads: int) -> None:
    loaded.lib.linnet_k_set_threads(threads)
    assert loaded.lib.linnet_k_threads() == threads
    for n in (0, 1, 2, 7, 64, 1000):
        for _ in range(20):
            count(loaded.lib, n)
    loaded.lib.linnet_k_set_threads(0)


def test_callers_at_once(loaded: Any) -> None:
    def call() -> None:
        for _ in range(50):
            count(loaded.lib, 50)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_computes(loaded: Any) -> None:
    count(loaded.lib, 100)
    child = os.fork()
    if child == 0:
        try:
            count(loaded.lib, 100)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_what_a_task_throws_reaches_the_caller(loaded: Any, threads: int) -> None:
    lib = loaded.lib
    lib.linnet_k_set_threads(threads)
    try:
        for at in (0, 50, 99):
            done = np.zeros(100, np.int32)
            assert lib.linnet_k_exhaust(i64(100), i64(at), address(done)) == 1
            assert done[at] == 0 and done.max() <= 1
        done = np.zeros(100, np.int32)
        assert lib.linnet_k_exhaust(i64(100), i64(-1), address(done)) == 0
        assert (done == 1).all()
    finally:
        lib.linnet_k_set_threads(0)


def test_threads_and_instruction_set_from_the_environment(loaded: Any) -> None:
    code = (
        "import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]);"
        "print(lib.linnet_k_threads(), lib.linnet_k_isa())"
    )
    env = {**os.environ, "LINNET_THREADS": "3", "LINNET_ISA": "portable"}
    out = subprocess.run(
        [sys.executable, "-c", code, str(library())], env=env, capture_output=True, check=True
    )
    assert out.stdout.split() == [b"3", b"0"]


def test_the_header_stands_alone(tmp_path: Any) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text('#include "linnet/kernels.h"\nint main() { return 0; }\n')
    compiler = os.environ.get("CXX", "g++")
    flags = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
    subprocess.run([compiler, *flags, f"-I{sources.INCLUDE}", str(source)], check=True)


STARTS_FEW = """
import ctypes, resource, sys
import numpy as np
lib = ctypes.CDLL(sys.argv[1])
if sys.argv[2] == "resized":
    lib.linnet_k_set_threads(2)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (256 << 20), resource.RLIM_INFINITY))
if sys.argv[2] == "resized":
    lib.linnet_k_set_threads(1000)
for _ in range(2):
    print(lib.linnet_k_threads())
    y = np.zeros((300, 2), np.int32)
    lib.linnet_k_count(ctypes.c_int64(300), ctypes.c_void_p(y.ctypes.data))
    assert (y == 1).all()
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    lib.linnet_k_set_threads(3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no limit on memory to reach")
@pytest.mark.skipif(
    "LINNET_TEST_KERNELS" in os.environ, reason="a sanitizer's own memory ends first"
)
@pytest.mark.parametrize("when", ["made", "resized"])
def test_as_many_threads_as_the_system_starts(loaded: Any, when: str) -> None:
    """A thousand stacks don't fit the limit: fewer threads do all of the work."""
    out = subprocess.run(
        [sys.executable, "-c", STARTS_FEW, str(library()), when],
        env={**os.environ, "LINNET_THREADS": "1000", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    first, second = map(int, out.stdout.split())
    assert 1 <= first < 1000
    assert second == 3


SANITIZERS = {
    "address,undefined": ("libasan.so", {"ASAN_OPTIONS": "detect_leaks=0"}),
    "thread": ("libtsan.so", {"TSAN_OPTIONS": "die_after_fork=0 exitcode=66"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(SANITIZERS))
def test_under_a_sanitizer(kind: str) -> None:
    """The other tests of this folder in a process of their own, on an instrumented library."""
    runtime, options = SANITIZERS[kind]
    compiler = os.environ.get("CXX", "g++")
    # The C++ library beside it, or the sanitizer doesn't find what throws.
    preload = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, check=True, text=True
        ).stdout.strip()
        for name in (runtime, "libstdc++.so")
    ]
    if not all(Path(p).is_absolute() for p in preload):
        pytest.skip(f"the compiler has no {runtime}")
    flags = (f"-fsanitize={kind}", "-fno-sanitize-recover=undefined", "-O1", "-g1")
    made = library(flags)
    env = {
        **os.environ,
        **options,
        "OPENBLAS_NUM_THREADS": "1",  # its threads' memory is not ours to judge
        "LD_PRELOAD": ":".join(preload),
        "LINNET_TEST_KERNELS": str(made),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    here = str(Path(__file__).parent)
    out = subprocess.run([*command, "-s", here], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stdout[-4000:] + out.stderr[-4000:]
