"""Checking executes nothing of a package: watched by an audit hook in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import linnet

HOSTILE = "import os\nos.system('touch pwned')\nopen('pwned', 'w')\nraise SystemExit('hostile')\n"

CARD = """\
[model]
name = "package"
title = "Toy"
summary = "A toy."
license = "MIT"
family = "toy"

[source]
path = "src/lib.linnet"

[weights]
files = ["model.safetensors"]
bindings = "bindings.json"
"""

WATCH = """
import json, os, sys

package, commands = sys.argv[1], json.loads(sys.argv[2])
allowed = [os.path.realpath(p) for p in json.loads(sys.argv[3])]
package = os.path.realpath(package)
wrong, armed = [], False
REFUSED = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
           "subprocess.Popen", "socket.", "pty.spawn", "urllib.", "webbrowser.")

def hook(event, args):
    global armed
    if not armed:
        return
    armed = False
    try:
        if event.startswith(REFUSED):
            wrong.append(f"{event} {args!r}")
        elif event == "open" and isinstance(args[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(args[0]))
            inside = path == package or path.startswith(package + os.sep)
            if inside and not path.endswith((".linnet", ".toml", ".json")):
                wrong.append(f"opened {path}")
            elif not inside and not any(path.startswith(root) for root in allowed):
                wrong.append(f"opened {path}")
            elif isinstance(args[1], str) and set(args[1]) & set("wax+") and path != os.devnull:
                wrong.append(f"wrote {path}")
        elif event in ("ctypes.dlopen", "compile", "exec", "import"):
            if package in repr(args[1 if event == "compile" else 0]):
                wrong.append(f"{event} {args!r}")
    finally:
        armed = True

sys.dont_write_bytecode = True
os.chdir(package)
from linnet.cli.app import main
sys.addaudithook(hook)
armed = True
codes = [main(command) for command in commands]
armed = False
print(json.dumps({"codes": codes, "wrong": wrong}))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "package"
    (root / "src" / "inner").mkdir(parents=True)
    (root / "linnet.toml").write_text('[package]\nname = "toy"\n')
    (root / "src/lib.linnet").write_text(
        "module toy\n\nuse crate.inner.part::{double}\n\n"
        "/// Doubled twice.\npub fn four(x: f32) -> f32 {\n    return double(double(x))\n}\n"
    )
    (root / "src/inner/part.linnet").write_text(
        "module toy.inner.part\n\npub fn double(x: f32) -> f32 {\n    return x + x\n}\n"
    )
    names = ["conftest.py", "linnet.py", "sitecustomize.py", "click.py", "setup.py", "toy.py"]
    for name in names:
        for folder in (root, root / "src", root / "src/inner"):
            (folder / name).write_text(HOSTILE)
    (root / "src/__init__.py").write_text(HOSTILE)
    (root / "nest.toml").write_text(CARD)
    (root / "bindings.json").write_text("{}")
    (root / "build.sh").write_text("touch pwned\n")
    (root / ".env").write_text("LINNET_DEBUG=1\n")
    return root


def test_check_fmt_inspect_and_show_run_nothing(package: Path) -> None:
    lib = str(package / "src/lib.linnet")
    commands = [
        ["check", str(package)],
        ["check", "--json", lib],
        ["fmt", "--check", str(package)],
        ["inspect", "--tokens", lib],
        ["inspect", "--ast", lib],
        ["inspect", "--parameters", lib],
        ["inspect", "--ir", lib],
        ["nest", "show", str(package)],
    ]
    own = Path(linnet.__file__).resolve().parent
    allowed = [str(own), *{sys.prefix, sys.base_prefix, sys.exec_prefix}]
    arguments = [str(package), json.dumps(commands), json.dumps(allowed)]
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(WATCH), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["wrong"] == []
    assert result["codes"] == [0] * len(commands), done.stdout + done.stderr
    assert not list(package.rglob("pwned"))
