"""How engines with builders of their own make their files, in an environment that has them.

    python -m bench.peers.builders.NAME FOLDER

Every file is made from `FOLDER/hf`, and only when it is lacking.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path


def build(targets: Sequence[Path], command: Callable[[Path, Path], list[str]]) -> int:
    """Run `command(target, partial)` for each target that is lacking, which fills the folder
    `partial`; the number that failed."""
    failed = 0
    for target in targets:
        if target.exists():
            continue
        partial = target.with_name(target.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.parent.mkdir(parents=True, exist_ok=True)
        if subprocess.run(command(target, partial), check=False).returncode:
            failed += 1
        else:
            partial.rename(target)
    return failed
