"""Mutated manifests: always a package and reports with sound places, never an exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from linnet.diagnostics import render_json, render_text
from linnet.packages import read_package

GOOD = """\
[package]
name = "toy"
version = "0.1.0"
language = "0.1"
authors = ["one", "two"]

[dependencies]
shared = { path = "../shared" }
other.path = "../other"

[tool.x]
y = [1, { a = 2 }]
"""
PIECES = [
    "[", "]", "{", "}", "=", '"', "'", "#", "\n", "\r", "\0", "\t", "name", "[[package]]", "é",
    "[package]", "[dependencies]", ".", ",", "1e9", "1979-05-27", '"""', "'''", "\\u0000", "std",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_mutations(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        text = GOOD
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text) + 1)
            end = min(len(text), at + rng.choice((0, 0, 1, 5, 30)))
            text = text[:at] + rng.choice(PIECES) * rng.choice((1, 1, 1, 3)) + text[end:]
        data = bytearray(text.encode())
        if data and rng.random() < 0.2:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "linnet.toml").write_bytes(data)
        package, problems = read_package(tmp_path)
        assert package.name
        assert {each.code for each in problems} <= {"E5001"}
        assert len(render_text(problems)) < 20_000
        render_json(problems)
