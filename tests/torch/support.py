"""What the backend's tests share: programs from text, run by PyTorch and by the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch

import linnet
import linnet.torch
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator

from ..matrix.compare import difference as difference

Array = np.ndarray[Any, Any]


def checked(folder: Path, text: str) -> Program:
    """The program of a lone file with this text."""
    path = folder / "program.linnet"
    path.write_text(text, encoding="utf-8")
    return linnet.load_program(path)


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
