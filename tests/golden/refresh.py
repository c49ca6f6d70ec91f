"""Write what the golden cases print now: python tests/golden/refresh.py [PART OF A NAME ...]

Makes an expectation for each source that has none. Read the difference before committing it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.golden.harness import CASES, expectations, new_cases, run_case


def refresh(parts: list[str]) -> None:
    made = set(new_cases())
    for path in expectations():
        name = path.relative_to(CASES).as_posix()
        if parts and not any(part in name for part in parts):
            continue
        old, new = path.read_text(encoding="utf-8"), run_case(path)
        if old != new:
            path.write_text(new, encoding="utf-8")
            print("new    " if path in made else "changed", name)


if __name__ == "__main__":
    refresh(sys.argv[1:])
