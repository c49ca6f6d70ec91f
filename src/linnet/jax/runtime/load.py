"""From a source and weights to a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from linnet.backends.natives import NUMERICS
from linnet.backends.present import check_present, present_paths
from linnet.backends.source import Source, bound, default_entry
from linnet.ir import Program as Checked
from linnet.jax.runtime.arrays import settings, zeros_of
from linnet.jax.runtime.code import Settings, generate
from linnet.jax.runtime.entry import Entry
from linnet.jax.runtime.model import Model, Program
from linnet.jax.runtime.tree import repeated
from linnet.passes import Binding, bind
from linnet.types import GenericArg
from linnet.weights import LoadPlan, manifest_of, open_weights, plan_load
from linnet.weights import read_bindings as read_bindings_file

# So many alike blocks in a program that repeats their code are too many: XLA's time for a program
# grows faster than its length.
LONG = 96


@dataclass(frozen=True, slots=True)
class Options:
    """What every loader takes.

    Without `weights` every parameter starts at zero; optional ones are then absent unless their
    paths are in `present`.
    """

    generics: Mapping[str, int | str] | None = None
    weights: Any = None
    bindings: Any = None
    entry: str | None = None
    root: str | None = None
    numerics: str = "fast"
    cast_dtype: bool = False
    std_root: str | Path | None = None
    present: Collection[str] = ()


def load_source(source: Source, **options: Any) -> Entry:
    """One entry of a program as a pure function through generated `jax.numpy` source.

    `source` is a `.linnet` file or a package's folder (or a program loaded before); the other
    options are those of `Options`. Raises `CompileError`, `BindError` or `WeightError` with every
    problem found.
    """
    program, arrays = _program(source, _checked(options), False)
    return Entry(program, arrays, program.default)


def load(source: Source, **options: Any) -> Entry:
    """One entry of a program through StableHLO: one compiled program for each set of shapes.

    As `load_source`, but a call with state takes over the storage of the state it is given, so
    that XLA updates caches where they lie. With 96 alike blocks or more their code is not repeated,
    but compiled once, as `load_source` does it.
    """
    program, arrays = _program(source, _checked(options), True)
    return Entry(program, arrays, program.default, donate=True)


def load_source_model(source: Source, **options: Any) -> Model:
    """What `load_source` loads as a model that keeps its own state and runs every entry."""
    return Model(*_program(source, _checked(options), False))


def load_model(source: Source, **options: Any) -> Model:
    """What `load` loads as a model that keeps its own state and runs every entry, over one copy of
    the weights."""
    return Model(*_program(source, _checked(options), True))


def _checked(options: Mapping[str, Any]) -> Options:
    known = [f.name for f in fields(Options)]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(f"the JAX backend has no option `{unknown[0]}`; it has {', '.join(known)}")
    made = Options(**options)
    if made.numerics not in NUMERICS:
        raise ValueError(f"numerics is one of {', '.join(NUMERICS)}, not {made.numerics!r}")
    check_present(made.weights, made.present)
    return made


def _program(source: Source, options: Options, whole: bool) -> tuple[Program, dict[str, jax.Array]]:
    binding = bound(source, options.root, options.entry, options.generics or {}, options.std_root)
    default = default_entry(binding, options.entry)
    whole = whole and repeated(binding.root) < LONG
    device = jax.default_backend()
    how = Settings(
        options.numerics, device, whole, scan=not whole, donate=True, bits=device == "cpu"
    )
    with settings():
        arrays = _arrays(binding, options)
    return Program(binding, frozenset(arrays), how, default), arrays


def _arrays(binding: Binding, options: Options) -> dict[str, jax.Array]:
    if options.weights is None:
        there = present_paths(manifest_of(binding), options.present)
        return {p.path: zeros_of(p.type) for p in binding.params if p.path in there}
    with open_weights(options.weights) as opened:
        lines = None if options.bindings is None else read_bindings_file(options.bindings)
        return read_all(plan_load(manifest_of(binding), opened, lines, options.cast_dtype))


def read_all(plan: LoadPlan) -> dict[str, jax.Array]:
    """Every tensor read once; tied paths share one."""
    arrays: dict[str, jax.Array] = {}
    for item in plan.items:
        array = jnp.asarray(plan.read(item))
        for path in item.paths:
            arrays[path] = array
    return arrays


def generate_source(
    program: Checked,
    block: str | None,
    entry: str,
    generics: Mapping[str, int | str] | None = None,
    *,
    sizes: Mapping[str, GenericArg] | None = None,
    numerics: str = "fast",
    present: Collection[str] = (),
) -> str:
    """The Python module that runs one entry of a program. Optional parameters are absent unless
    their paths are in `present`."""
    binding = bind(program, block, generics or {})
    there = present_paths(manifest_of(binding), present)
    how = Settings(numerics, "cpu", scan=True)
    return generate(binding, entry, how, there, sizes, block or program.root).generated.text
