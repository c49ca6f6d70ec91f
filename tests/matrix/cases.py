"""Programs that reach the backends' kernels: calls of ops with what is known about their masks,
positions and sizes. What a case is, and how it becomes an entry of a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import linnet
from linnet.ir import Program

TOLERANCE = {"f32": 2e-4, "bf16": 2e-2, "f16": 4e-3}
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
EVERY, NARROW = ("f32", "bf16", "f16"), ("bf16", "f16")
Sizes = dict[str, int]
Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A module with one entry `run`, inputs for it, and the kernel it should reach."""

    kernel: str
    use: str
    entry: str
    sizes: list[Sizes]
    inputs: Callable[[Rng, Sizes], list[Any]]
    dtypes: tuple[str, ...] = EVERY
    name: str = ""
    numerics: str = "fast"  # those under which the kernel is the one chosen


def floats(rng: Rng, *shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def ints(rng: Rng, low: int, high: int, *shape: int) -> Any:
    return rng.integers(low, max(high, low + 1), shape).astype(np.int32)


def one_input(*names: str) -> Callable[[Rng, Sizes], list[Any]]:
    return lambda rng, s: [floats(rng, *(s[n] for n in names))]


def fixed(case: Case, sizes: Sizes) -> Case:
    """The case with numbers for its sizes, as a model's caches have them."""
    entry = case.entry
    for name, number in sizes.items():
        entry = re.sub(rf"\b{name}: Dim(, |(?=>))", "", entry)
        entry = re.sub(rf"\b{name}\b(?!:)", str(number), entry)
    entry = entry.removeprefix("<>")
    return replace(case, entry=entry, sizes=[sizes], name=f"fixed-{case.name or case.kernel}")


def as_dtype(value: Any, dtype: str) -> Any:
    is_float = isinstance(value, np.ndarray) and value.dtype == np.float32
    return value.astype(DTYPES[dtype]) if is_float else value


def typed(case: Case, made: list[Any], dtype: str) -> list[Any]:
    """The inputs in `dtype`, but for those that the entry declares as f32."""
    params = case.entry[case.entry.index("(") :].split("; ")[1 : len(made) + 9]
    kinds = [part.split("]")[0] for part in params]
    arrays = iter(kinds)
    return [as_dtype(v, dtype) if isinstance(v, np.ndarray) and next(arrays) == "T" else v
            for v in made]  # fmt: skip


def text_of(case: Case, dtype: str) -> str:
    body = case.entry.replace("; T]", f"; {dtype}]").replace(", T>", f", {dtype}>")
    lines = body.replace(" let ", "\n let ").replace(" return ", "\n return ")
    return f"module m\n{case.use}\npub entry run{lines}\n"


def together(folder: Path, cases: Sequence[Case], dtype: str) -> Program:
    """One program with an entry `case_0`, `case_1`, ... for each case."""
    uses: dict[str, dict[str, None]] = {}
    entries = []
    for number, case in enumerate(cases):
        found = re.match(r"use ([\w.]+)::\{(.*)\}", case.use)
        assert found is not None
        uses.setdefault(found[1], {}).update(dict.fromkeys(found[2].split(", ")))
        _, _, rest = text_of(case, dtype).partition("pub entry run")
        entries.append(f"pub entry case_{number}{rest}")
    lines = [f"use {module}::{{{', '.join(names)}}}" for module, names in uses.items()]
    path = folder / f"{dtype}.linnet"
    path.write_text("\n".join(["module m", *lines, *entries]), encoding="utf-8")
    return linnet.load_program(path)
