"""What the backend's tests share: functions run by machine code and by the oracle.

Compiling takes longer than running, so that many functions go into one translation unit, each in a
namespace of its own.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import linnet
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.native.emit.module import Generated
from linnet.native.runtime import model as model_module
from linnet.native.runtime.code import Symbols, load_symbols
from linnet.native.runtime.model import Model
from linnet.native.toolchain.build import build

from ..matrix.compare import difference as difference

Array = np.ndarray[Any, Any]
# With LINNET_SANITIZE the tests run under AddressSanitizer and UBSan; see test_sanitizers.
SANITIZE = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
QUICK = SANITIZE if os.environ.get("LINNET_SANITIZE") else ("-O0",)
_SYMBOL = re.compile(r"\blinnet_(open|close|bind|run)\b")


def checked(folder: Path, text: str) -> Program:
    """The program of a lone file with this text."""
    path = folder / "program.linnet"
    path.write_text(text, encoding="utf-8")
    return linnet.load_program(path)


@dataclass(frozen=True)
class Run:
    """A call to make: the model, its entry, and what it is given."""

    model: Model
    entry: str
    inputs: Any
    generics: dict[str, Any]

    def generated(self) -> Generated:
        """The text that `run_entry` would compile."""
        model, signature = self.model, self.model._signature(self.entry)
        checked_ = model_module.Reader(signature, model_module.NumPyArrays()).read(
            self.inputs, self.generics
        )
        return model._code(self.entry, signature.forms(checked_.generics))


def together(texts: Sequence[str]) -> str:
    """One translation unit of many."""
    parts = ['#include "linnet/support.h"']
    for number, text in enumerate(texts):
        renamed = _SYMBOL.sub(rf"linnet_\1_{number}", text)
        parts += [f"namespace unit_{number} {{", renamed, "}"]
    return "\n".join(parts)


def symbols_of(path: Path, number: int) -> Symbols:
    """The functions of one unit."""
    library = ctypes.CDLL(str(path))

    class Renamed:
        def __getattr__(self, name: str) -> Any:
            return getattr(library, f"{name}_{number}")

    return load_symbols(path, Renamed())


def run_all(runs: Sequence[Run], flags: tuple[str, ...] = QUICK) -> list[Any]:
    """Every run's result, or the error it ends with."""
    texts: dict[str, int] = {}
    numbers = [texts.setdefault(run.generated().text, len(texts)) for run in runs]
    kernels = any(run.generated().kernels for run in runs)
    path = build(together(list(texts)), runs[0].model._numerics, flags, with_kernels=kernels)
    found: list[Any] = []
    for number, run in zip(numbers, runs, strict=True):
        symbols = symbols_of(path, number)
        model = run.model
        try:
            found.append(_with(model, symbols, run))
        except Exception as error:
            found.append(error)
    return found


def _with(model: Model, symbols: Symbols, run: Run) -> Any:
    model._symbols = lambda generated: symbols  # type: ignore[method-assign]
    model._loaded.clear()
    return model.run_entry(run.entry, run.inputs, run.generics)


def oracle(program: Program, entry: str, inputs: Any, **generics: Any) -> Any:
    """The entry's result by the NumPy evaluator."""
    return Evaluator(program).run(f"{program.root}::{entry}", inputs, generics)
