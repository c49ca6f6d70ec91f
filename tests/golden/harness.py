"""Golden cases: a source, a command line, and what it prints, side by side.

`cases/AREA/NAME.txt` starts with `$ linnet ...`, which runs in that folder; what follows is
everything it prints, then `exit N`. The sources it names lie beside it.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from linnet.cli.app import main
from linnet.packages import stdlib_root

CASES = Path(__file__).resolve().parent / "cases"
PROMPT = "$ linnet "


def expectations() -> list[Path]:
    """Every case's expectation file, in order."""
    return sorted(CASES.rglob("*.txt"))


def run_case(path: Path) -> str:
    """What the expectation file should hold: its command line, output and exit code."""
    command = path.read_text(encoding="utf-8").split("\n", 1)[0]
    if not command.startswith(PROMPT):
        raise ValueError(f"{path} does not start with `{PROMPT}`")
    output = io.StringIO()
    with chdir(path.parent), redirect_stdout(output), redirect_stderr(output):
        code = main(shlex.split(command.removeprefix(PROMPT)))
    text = output.getvalue().replace(os.fspath(stdlib_root()), "STD")
    return f"{command}\n{text}exit {code}\n"


def codes_in(text: str) -> set[str]:
    """The diagnostic codes an expectation shows with a place."""
    return set(re.findall(r"^(?:error|warning)\[(\w+)\].*\n *--> \S+:\d+:\d+$", text, re.MULTILINE))


def new_cases() -> list[Path]:
    """Expectation files that sources without one ask for: one `linnet check` each."""
    made = []
    for area in sorted(path for path in CASES.iterdir() if path.is_dir()):
        for source in sorted(area.iterdir()):
            is_package = (source / "linnet.toml").is_file()
            if source.suffix == ".linnet" or is_package:
                path = area / f"{source.stem}.txt"
                if not path.exists():
                    path.write_text(f"{PROMPT}check {source.name}\n", encoding="utf-8")
                    made.append(path)
    return made
