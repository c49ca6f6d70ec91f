"""The five ways to run a program, all called alike.

A `Job` is one call; `run` takes many, because compiling costs more than running: the native backend
puts them all into one translation unit.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from linnet.backends.checks import Bounds
from linnet.backends.limits import Limit
from linnet.ir import Program
from linnet.types import DType

# Each with the package it needs, and where it says what its runtime cannot do.
BACKENDS = {
    "torch": ("torch", "linnet.torch.limits"),
    "jax_source": ("jax", "linnet.jax.limits"),
    "jax_model": ("jax", "linnet.jax.limits"),
    "onnx_model": ("onnxruntime", "linnet.onnx.limits"),
    "native": ("numpy", "linnet.native.limits"),
}


def on_every_backend(*names: str) -> pytest.MarkDecorator:
    """A parameter `backend` for each of these (all without names) whose package is installed."""
    return pytest.mark.parametrize("backend", [one_of(name) for name in names or BACKENDS])


def one_of(name: str, *values: Any, slow: bool = False) -> Any:
    """A case of a backend, left out where its package is missing."""
    return pytest.param(
        name, *values, marks=marks_of(name, slow), id="-".join(map(str, (name, *values)))
    )


def marks_of(name: str, slow: bool = False) -> list[pytest.MarkDecorator]:
    package, _ = BACKENDS[name]
    missing = importlib.util.find_spec(package) is None
    marks = [pytest.mark.skipif(missing, reason=f"needs {package}")]
    return [*marks, pytest.mark.slow] if slow else marks


@dataclass(frozen=True)
class Job:
    """One call: a model's entry and what it is given. Without `checked`, integers that lie outside
    the axes they index are not refused but reach the code."""

    label: Any
    program: Program
    inputs: Any
    entry: str = "run"
    generics: Mapping[str, Any] = field(default_factory=dict)
    numerics: str = "exact"
    checked: bool = True


def loader(backend: str) -> Callable[..., Any]:
    """What makes a model of a source or a program."""
    match backend:
        case "torch":
            torch = import_module("torch")
            torch.set_num_threads(1)
            return lambda source, **options: import_module("linnet.torch").load(
                source, **{"compile": False, **options}
            )
        case "jax_source":
            found: Callable[..., Any] = import_module("linnet.jax").load_source_model
        case "jax_model":
            found = import_module("linnet.jax").load_model
        case "onnx_model":
            return lambda source, **options: import_module("linnet.onnx").load_model(
                source, **{"threads": 1, **options}
            )
        case _:
            found = import_module("linnet.native").load
    return found


def limits(backend: str) -> tuple[Limit, ...]:
    """What the backend says that its runtime cannot do."""
    found: tuple[Limit, ...] = import_module(BACKENDS[backend][1]).LIMITS
    return found


def refused(backend: str, kinds: Sequence[str], dtype: DType) -> bool:
    return any(limit.op in kinds and dtype in limit.dtypes for limit in limits(backend))


def _check_others(check: Any, entry: str, signature: Any, checked: Any) -> None:
    if signature.name != entry:
        check(signature, checked)


def unchecked(model: Any, entry: str) -> None:
    """Lets integers outside their axes reach the code of `entry`."""
    for path in (("_linnet", "bounds"), ("_program", "_bounds"), ("_bounds",)):
        found = model
        for name in path:
            found = getattr(found, name, None)
        if isinstance(found, Bounds):
            # What is known stays true: it is kept for later loads.
            vars(found)["check"] = partial(_check_others, found.check, entry)
            return
    raise AssertionError(f"{type(model)} checks no bounds")


def to_numpy(value: Any) -> Any:
    """A backend's results as NumPy arrays, through tuples."""
    if isinstance(value, tuple):
        return tuple(map(to_numpy, value))
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":
            return value.float().numpy().astype(ml_dtypes.bfloat16)
        return value.numpy()
    return None if value is None else np.asarray(value)


def run(backend: str, jobs: Sequence[Job], **options: Any) -> list[Any]:
    """Every job's result, or the exception it ended with."""
    load = loader(backend)
    models: dict[Any, Any] = {}
    for job in jobs:
        key = (id(job.program), job.numerics)
        if key not in models:
            models[key] = load(job.program, numerics=job.numerics, **options)
        if not job.checked:
            unchecked(models[key], job.entry)
    chosen = [models[id(job.program), job.numerics] for job in jobs]
    if backend == "native":
        return _compiled_together(jobs, chosen)
    return [_one(model, job) for model, job in zip(chosen, jobs, strict=True)]


def _one(model: Any, job: Job) -> Any:
    try:
        return to_numpy(model.run_entry(job.entry, job.inputs, generics=dict(job.generics)))
    except Exception as error:
        return error


def _compiled_together(jobs: Sequence[Job], models: Sequence[Any]) -> list[Any]:
    from ..native.support import Run, run_all

    runs = [
        Run(model, job.entry, job.inputs, dict(job.generics))
        for model, job in zip(models, jobs, strict=True)
    ]
    found: list[Any] = [None] * len(jobs)
    by_numerics: dict[str, list[int]] = {}
    for number, job in enumerate(jobs):
        try:
            runs[number].generated()
        except Exception as error:  # refused before there is anything to compile
            found[number] = error
        else:
            by_numerics.setdefault(job.numerics, []).append(number)
    for numbers in by_numerics.values():
        for number, result in zip(numbers, run_all([runs[n] for n in numbers]), strict=True):
            found[number] = result
    return found


def source_text(backend: str, job: Job) -> str:
    """The code that a failing job ran, where it can be shown."""
    try:
        model = loader(backend)(job.program, numerics=job.numerics)
        return str(model.generated_source(job.entry))
    except Exception as error:
        return f"(no source: {error})"
