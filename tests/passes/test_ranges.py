"""Ranges say the same of a call's integers as the requirements they were made of."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

import linnet
from linnet.passes.bounds import Requirement, input_requirements, violations
from linnet.passes.ranges import Ranges

CACHED = """
entry f<N: Dim, V: Dim, S: Dim>(
    table: Tensor[V; f32], cache: Tensor[N; f32], ids: Tensor[S; i32], pos: i32
) -> Tensor[S; f32] {
    let rows[i] = cast<i64>(pos) + iota<i64>(S)[i]
    let y[i] = cache[rows[i]] + table[cast<i64>(ids[i])]
    return y
}
"""
DIVIDED = """
entry f<N: Dim>(x: Tensor[N; i32], by: i32) -> Tensor[N; i32] {
    let y[i] = x[i] / by
    return y
}
"""
REVERSED = """
entry f<N: Dim>(x: Tensor[N; f32], at: i32) -> f32 {
    return x[cast<i64>(5 - 2 * at)]
}
"""


def requirements(folder: Path, body: str) -> tuple[Requirement, ...]:
    path = folder / "m.linnet"
    path.write_text(f"module m\n{body}\n", encoding="utf-8")
    program = linnet.load_program(path)
    (entry,) = program.entries(None).values()
    return input_requirements(program.functions, entry)


def agree(found: tuple[Requirement, ...], sizes: dict[str, int], inputs: dict[str, Any]) -> bool:
    """Whether both say the same, and what they say."""
    ranges = Ranges.of(found, sizes)
    assert ranges is not None
    values = []
    for leaf in ranges.leaves:
        value = np.asarray(inputs[leaf.name])
        values.append(int(value.min() if leaf.how == "min" else value.max()))
    holds = ranges.hold(values)
    assert holds == (not violations(found, inputs, sizes)), (sizes, inputs)
    return holds


def test_the_same_as_the_requirements(tmp_path: Path) -> None:
    found = requirements(tmp_path, CACHED)
    said = set()
    for n, v, s in itertools.product((1, 4), (1, 3), (1, 2)):
        for pos, low, high in itertools.product((-1, 0, 1, 3, 4), (-1, 0, 2), (0, 2, 3)):
            inputs = {"ids": np.array([low, high][:s], np.int32), "pos": pos}
            said.add(agree(found, {"N": n, "V": v, "S": s}, inputs))
    assert said == {True, False}


def test_factors_of_any_sign(tmp_path: Path) -> None:
    found = requirements(tmp_path, REVERSED)
    assert [agree(found, {"N": 4}, {"at": at}) for at in range(-1, 5)] == [
        False, False, True, True, False, False,
    ]  # fmt: skip


def test_sizes_that_use_nothing_ask_for_nothing(tmp_path: Path) -> None:
    ranges = Ranges.of(requirements(tmp_path, CACHED), {"N": 4, "V": 3, "S": 0})
    assert ranges is not None and ranges.sums == ()


def test_what_is_no_range_is_left_to_the_requirements(tmp_path: Path) -> None:
    assert Ranges.of(requirements(tmp_path, DIVIDED), {"N": 4}) is None
