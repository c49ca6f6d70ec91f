"""From a source and weights to a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from linnet.backends.source import Source, bound, default_entry
from linnet.backends.natives import NUMERICS
from linnet.ir import Program as Checked
from linnet.jax.runtime.arrays import settings, zeros_of
from linnet.jax.runtime.code import Settings, generate
from linnet.jax.runtime.entry import Entry
from linnet.jax.runtime.model import Model, Program
from linnet.passes import bind
from linnet.types import GenericArg
from linnet.weights import LoadPlan, manifest_of, open_weights, plan_load
from linnet.weights import read_bindings as read_bindings_file


def load_source(
    source: Source,
    *,
    generics: Mapping[str, int | str] | None = None,
    weights: Any = None,
    bindings: Any = None,
    entry: str | None = None,
    root: str | None = None,
    numerics: str = "fast",
    cast_dtype: bool = False,
    std_root: str | Path | None = None,
    present: Collection[str] = (),
) -> Entry:
    """One entry of a program as a pure function through generated `jax.numpy` source.

    `source` is a `.linnet` file or a package's folder (or a program loaded before). Without
    `weights` every parameter starts at zero; optional ones are then absent unless their paths are
    in `present`. Raises `CompileError`, `BindError` or `WeightError` with every problem found.
    """
    program, arrays = _program(
        source, generics, weights, bindings, entry, root, numerics, cast_dtype, std_root, present,
        False,
    )  # fmt: skip
    return Entry(program, arrays, program.default)


def load(
    source: Source,
    *,
    generics: Mapping[str, int | str] | None = None,
    weights: Any = None,
    bindings: Any = None,
    entry: str | None = None,
    root: str | None = None,
    numerics: str = "fast",
    cast_dtype: bool = False,
    std_root: str | Path | None = None,
    present: Collection[str] = (),
) -> Entry:
    """One entry of a program through StableHLO: one compiled program for each set of shapes.

    As `load_source`, but a call with state takes over the storage of the state it is given, so
    that XLA updates caches where they lie.
    """
    program, arrays = _program(
        source, generics, weights, bindings, entry, root, numerics, cast_dtype, std_root, present,
        True,
    )  # fmt: skip
    return Entry(program, arrays, program.default, donate=True)


def load_source_model(source: Source, **options: Any) -> Model:
    """What `load_source` loads as a model that keeps its own state and runs every entry."""
    return _model(source, False, options)


def load_model(source: Source, **options: Any) -> Model:
    """A model each of whose entries is one compiled program a shape; see `linnet.jax.load`."""
    return _model(source, True, options)


def _model(source: Source, whole: bool, options: dict[str, Any]) -> Model:
    names = ("generics", "weights", "bindings", "entry", "root", "numerics", "cast_dtype",
             "std_root", "present")  # fmt: skip
    unknown = [name for name in options if name not in names]
    if unknown:
        raise TypeError(f"the JAX backend has no option `{unknown[0]}`")
    defaults = {"numerics": "fast", "cast_dtype": False, "present": ()}
    program, arrays = _program(
        source, *(options.get(n, defaults.get(n)) for n in names), whole  # type: ignore[arg-type]
    )
    return Model(program, arrays)


def _program(
    source: Source,
    generics: Mapping[str, int | str] | None,
    weights: Any,
    bindings: Any,
    entry: str | None,
    root: str | None,
    numerics: str,
    cast_dtype: bool,
    std_root: str | Path | None,
    present: Collection[str],
    whole: bool,
) -> tuple[Program, dict[str, jax.Array]]:
    if numerics not in NUMERICS:
        raise ValueError(f"numerics is one of {', '.join(NUMERICS)}, not {numerics!r}")
    binding = bound(source, root, entry, generics or {}, std_root)
    default = default_entry(binding, entry)
    how = Settings(numerics, jax.default_backend(), whole, scan=not whole, donate=True)
    with settings():
        if weights is None:
            absent = {p.path for p in binding.params if p.optional} - set(present)
            arrays = {p.path: zeros_of(p.type) for p in binding.params if p.path not in absent}
        else:
            with open_weights(weights) as opened:
                lines = None if bindings is None else read_bindings_file(bindings)
                arrays = read_all(plan_load(manifest_of(binding), opened, lines, cast_dtype))
    return Program(binding, frozenset(arrays), how, default), arrays


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
) -> str:
    """The Python module that runs one entry of a program, all its parameters present."""
    binding = bind(program, block, generics or {})
    how = Settings(numerics, "cpu", scan=True)
    return generate(binding, entry, how, None, sizes, block or program.root).generated.text
