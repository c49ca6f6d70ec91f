"""What the tests share: programs from text or IR, run by ONNX Runtime and by the oracle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import linnet
from linnet.ir import Function, Program
from linnet.ir.evaluate import Evaluator

Array = np.ndarray[Any, Any]


def checked(folder: Path, text: str) -> Program:
    """The program of a lone file with this text."""
    path = folder / "program.linnet"
    path.write_text(text, encoding="utf-8")
    return linnet.load_program(path)


def as_program(function: Function) -> Program:
    """A function made by hand, as an entry of a module of its own."""
    module = function.name.rpartition("::")[0]
    return Program(module, {function.name: replace(function, kind="entry")}, {})


def oracle(program: Program, entry: str, inputs: Any, **generics: Any) -> Any:
    """The entry's result by the NumPy evaluator."""
    return Evaluator(program).run(f"{program.root}::{entry}", inputs, generics)


def difference(got: Any, want: Any) -> float:
    """The largest difference relative to 1 or to the values; infinite where shapes differ or one
    side alone is not a number."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, np.abs(a - b)) / np.maximum(1.0, np.abs(b))
    return float(np.nan_to_num(gap, nan=0.0, posinf=np.inf).max(initial=0.0))


def steps(got: Any, want: Any) -> float:
    """How many units in the last place of the dtype two float arrays differ by, at most; of others
    the largest difference."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if got.dtype.kind not in "fV" and got.dtype != ml_dtypes.bfloat16:
        same = np.array_equal(got, want)
        return 0.0 if same else float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    bits = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}[str(got.dtype)]
    least = {"bfloat16": -126, "float16": -14, "float32": -126, "float64": -1022}[str(got.dtype)]
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(b)
        unit = np.exp2(np.maximum(exponent - 1, least).astype(np.float64) - (bits - 1))
        gap = np.where((a == b) | np.isnan(a), 0.0, np.abs(a - b) / unit)
    return float(gap.max(initial=0.0))
