"""What the backend's tests share: programs from text or IR, run by PyTorch and by the oracle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch

import linnet
import linnet.torch
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


def to_torch(value: Any) -> Any:
    """NumPy to torch, bf16 included."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(value.astype(np.float32)).bfloat16()
    return torch.from_numpy(np.ascontiguousarray(value)).reshape(value.shape)


def to_numpy(value: Any) -> Any:
    """Torch to NumPy, through tuples."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.dtype == torch.bfloat16:
            return value.float().numpy().astype(ml_dtypes.bfloat16)
        return value.numpy()
    if isinstance(value, tuple):
        return tuple(map(to_numpy, value))
    return value


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
