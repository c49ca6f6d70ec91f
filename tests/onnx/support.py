"""What the tests share: programs from text, run by ONNX Runtime and by the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import linnet
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator

from ..matrix.compare import difference as difference

Array = np.ndarray[Any, Any]


def checked(folder: Path, text: str) -> Program:
    """The program of a lone file with this text."""
    path = folder / "program.linnet"
    path.write_text(text, encoding="utf-8")
    return linnet.load_program(path)


def oracle(program: Program, entry: str, inputs: Any, **generics: Any) -> Any:
    """The entry's result by the NumPy evaluator."""
    return Evaluator(program).run(f"{program.root}::{entry}", inputs, generics)
