"""What is prepared together: what shares work, and may not run where it is not asked for."""

from __future__ import annotations

from pathlib import Path

import linnet
from linnet.ir.walk import walk
from linnet.passes import Lowered, bind, lower

STEP = """
fn step(t: Tensor[2; f32], at: Tensor[2; i32]) -> Tensor[2; f32] {{
    let m[a] = cos(t[at[a]])
    return m
}}
pub entry main(x: Tensor[2; f32], on: bool, turns: i32) -> Tensor[2; f32] {{
    let at = 1 - iota<i32>(2)
    var t = cast<f32>(at)
    var y = x
{0}
    return y
}}
"""
WRITTEN = "    t = step(t, at)\n    y = sin(y) + t\n"


def lowered(folder: Path, body: str) -> Lowered:
    path = folder / "program.linnet"
    path.write_text(f"module program\n{STEP.format(body)}", encoding="utf-8")
    return lower(bind(linnet.load_program(path), None, {}), ["main"])


def cosines(low: Lowered) -> list[int]:
    """How many cosines each prepared function takes."""
    return sorted(
        sum(op.kind == "cos" for op in walk(low.functions[name].body)) for name in low.prepared
    )


def test_a_chain_is_one_function(tmp_path: Path) -> None:
    for steps in (2, 20):
        assert cosines(lowered(tmp_path, WRITTEN * steps)) == [steps]


def test_what_may_fail_waits_for_who_asks(tmp_path: Path) -> None:
    """The branch's step is neither made at its front nor made with what the loop asks for."""
    body = WRITTEN + (
        "    let u = step(t, at)\n"
        "    let v = step(u, at)\n"
        "    y = y + (if on { u + sin(y) } else { sin(y) })\n"
        "    for i in 0..turns { y = sin(y) + v }\n"
    )
    assert cosines(lowered(tmp_path, body)) == [1, 2, 3]


def test_what_always_runs_does_not_wait_for_a_branch(tmp_path: Path) -> None:
    body = "    t = step(t, at)\n    y = if on { y + t } else { y }\n    y = sin(y) + t\n"
    assert cosines(lowered(tmp_path, body * 5)) == [5]
