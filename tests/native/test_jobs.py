"""Compilers that are interrupted, fail or are killed: all end, and nothing half-made stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from linnet.native.errors import NativeError
from linnet.native.toolchain import jobs, store
from linnet.native.toolchain.build import build

pytestmark = pytest.mark.usefixtures("empty_cache")
TEXT = '#include "linnet/support.h"\nextern "C" int answer() { return 42; }\n'
# A compiler that works for as long as whoever started it lives, and says who it is.
SLOW = """#!/bin/sh
[ "$1" = --version ] && exec g++ --version
echo $$ >> "$STARTED"
while kill -0 $PPID 2>/dev/null; do sleep 0.05; done
"""


def beside(made: Path) -> Path:
    """Where the checksum of a file of the cache is."""
    return made.with_name(made.name + store.SUM)


def wait_for(what: Callable[[], bool]) -> None:
    for _ in range(1200):
        if what():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


def alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("call", ["kernels_object()", "build(TEXT, 'exact')"])
def test_ctrl_c_ends_every_compiler_and_leaves_nothing(call: str, tmp_path: Path) -> None:
    """`kill -INT` of the one process, as no terminal tells the compilers."""
    slow, started = tmp_path / "slow", tmp_path / "started"
    slow.write_text(SLOW)
    slow.chmod(0o700)
    started.touch()
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from linnet.native.toolchain.build import build\n"
        "from linnet.native.toolchain.kernels import kernels_object\n"
        f"TEXT = {TEXT!r}\n{call}"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "CXX": str(slow), "STARTED": str(started)},
    )  # fmt: skip
    wait_for(lambda: len(started.read_text().split()) > 0)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert said.rstrip().endswith("KeyboardInterrupt") and process.returncode != 0
    numbers = [int(word) for word in started.read_text().split()]
    wait_for(lambda: not any(map(alive, numbers)))
    assert list((tmp_path / "cache" / "native").iterdir()) == []
    assert len(numbers) <= min(8, os.cpu_count() or 1)  # what waited did not begin


def test_one_failure_stops_the_others(tmp_path: Path) -> None:
    started = tmp_path / "started"

    def work(number: int) -> None:
        if number == 1:
            wait_for(started.exists)
            raise NativeError("the second one failed")
        command = ["sh", "-c", f"echo > '{started}'; sleep 600"]
        jobs.run_command(command, tmp_path, dict(os.environ), 600)

    with pytest.raises(NativeError, match="the second one failed"), jobs.Workers(2) as workers:
        workers.map(work, [0, 1])
    with pytest.raises(NativeError, match="stopped"), jobs.Workers(1) as workers:
        workers._group.stop()
        workers.map(work, [0])


def test_what_a_killed_compile_leaves_is_no_object_and_goes_in_time(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text(SLOW)
    slow.chmod(0o700)
    code = f"from linnet.native.toolchain.build import build; build({TEXT!r}, 'exact')"
    folder = tmp_path / "cache" / "native"
    process = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True,
        env={**os.environ, "CXX": str(slow), "STARTED": str(tmp_path / "started")},
    )  # fmt: skip
    wait_for(lambda: folder.is_dir() and any(folder.rglob("model.cpp")))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (left,) = folder.iterdir()
    assert left.name.startswith(".making-")
    made = build(TEXT, "exact")
    assert set(folder.iterdir()) == {left, made, beside(made)}  # it may still be at work
    old = time.time() - 2 * store.UNFINISHED_SECONDS
    os.utime(left, (old, old))
    second = build(TEXT + "// again\n", "exact")
    assert set(folder.iterdir()) == {made, beside(made), second, beside(second)}
