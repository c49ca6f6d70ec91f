"""From a source and weights to a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linnet.backends.inputs import numpy_dtype
from linnet.backends.natives import NUMERICS
from linnet.backends.present import check_present, present_paths
from linnet.backends.source import Source, bound
from linnet.ir import Program
from linnet.native.runtime import warm
from linnet.native.runtime.code import generate
from linnet.native.runtime.front import Facts, Front, front_of
from linnet.native.runtime.linear import linear_weights
from linnet.native.runtime.memory import zeros
from linnet.native.runtime.model import Model
from linnet.native.runtime.options import (
    check_format,
    check_generics,
    check_patterns,
    checked_threads,
)
from linnet.native.runtime.packing import BLOCKS, Weight, Weights, WeightsFormat
from linnet.native.toolchain.kernels import wanted_isa
from linnet.passes import bind
from linnet.types import DTYPES, DType, GenericArg
from linnet.weights import manifest_of, open_weights, plan_load
from linnet.weights import read_bindings as read_bindings_file
from linnet.weights.manifest import Manifest

Array = np.ndarray[Any, Any]


def load(
    source: Source,
    *,
    generics: Mapping[str, int | str] | None = None,
    weights: Any = None,
    bindings: Any = None,
    entry: str | None = None,
    root: str | None = None,
    numerics: str = "fast",
    device: str = "cpu",
    cast_dtype: bool = False,
    std_root: str | Path | None = None,
    present: Collection[str] = (),
    weights_format: WeightsFormat = None,
    threads: int | None = None,
    profile: bool = False,
) -> Model:
    """Loads a checked program with its weights, to run as machine code of this CPU.

    `source` is a `.linnet` file or a package's folder (or a program loaded before). Without
    `weights` every parameter is zero, and optional ones are absent unless their paths are in
    `present`. `weights_format` quantises the weights of linear layers: `"int8"`, `"int4"`, `"bf16"`
    or `"f32"`, or a mapping of path patterns to these. `threads`, 1 to 1,024, is for all models of
    the process (default: `LINNET_THREADS`, else the physical cores it may use). With `profile` the
    code counts where its time goes: `Model.profile` shows it. Raises `CompileError`, `BindError` or
    `WeightError` with every problem found, `ValueError` for other options, and `MemoryError` for
    what does not fit.
    """
    if numerics not in NUMERICS:
        raise ValueError(f"numerics is one of {', '.join(NUMERICS)}, not {numerics!r}")
    if str(device) != "cpu":
        raise ValueError(f"the native backend runs on the cpu, not on {device!r}")
    check_generics(generics)
    check_format(weights_format)
    check_present(weights, present)
    threads = checked_threads(threads)
    wanted_isa()
    front = _front(source, root, entry, generics or {}, std_root)
    paths = {info.path for info in front.facts.params}
    check_patterns(weights_format, paths)
    if weights is None:
        items = _zeros(front.facts, present_paths(front.facts.manifest, present))
    else:
        items = _read(front.facts.manifest, weights, bindings, cast_dtype, numerics)
    held = Weights(items, weights_format, numerics, lambda: linear_weights(front.binding))
    return Model(front, held, numerics, threads, profile)


def _front(
    source: Source,
    root: str | None,
    entry: str | None,
    generics: Mapping[str, int | str],
    std_root: str | Path | None,
) -> Front:
    """What is known of a program from an earlier time, or from reading it now."""
    key = warm.program_key(source, root, entry, generics, std_root)
    facts = warm.read(key, Facts) if key is not None else None
    if facts is not None:
        return Front(facts, lambda: bound(source, root, entry, generics, std_root), key)
    made = front_of(bound(source, root, entry, generics, std_root), entry, key)
    if key is not None:
        warm.write(key, made.facts)
    return made


def _zeros(facts: Facts, present: frozenset[str]) -> dict[str, Weight]:
    items: dict[str, Weight] = {}
    for info in facts.params:
        if info.path not in present:
            continue
        assert isinstance(info.type.dtype, DType)
        shape = tuple(dim.constant or 0 for dim in info.type.dims)
        dtype = numpy_dtype(info.type.dtype)
        array = zeros(shape, dtype, f"the parameter `{info.path}`", np.zeros)
        items[info.path] = Weight(shape, dtype, array)
    return items


def _read(
    manifest: Manifest, weights: Any, bindings: Any, cast_dtype: bool, numerics: str
) -> dict[str, Weight]:
    """Every tensor in memory of its own; tied paths share one."""
    items: dict[str, Weight] = {}
    with open_weights(weights) as opened:
        lines = None if bindings is None else read_bindings_file(bindings)
        plan = plan_load(manifest, opened, lines, cast_dtype)
        for item in plan.items:
            stored = opened.info(item.tensor).stored
            blocks = None
            if numerics != "exact" and stored in BLOCKS and item.dtype in ("f32", "bf16"):
                blocks = opened.blocks(item.tensor) if len(item.shape) in (2, 3) else None
            dtype = numpy_dtype(DTYPES[item.dtype])
            made = Weight(item.shape, dtype, None if blocks is not None else plan.read(item),
                          blocks, stored)  # fmt: skip
            items.update(dict.fromkeys(item.paths, made))
    return items


def generate_source(
    program: Program,
    block: str | None,
    entry: str,
    generics: Mapping[str, int | str] | None = None,
    *,
    sizes: Mapping[str, GenericArg] | None = None,
    numerics: str = "fast",
    present: Collection[str] = (),
) -> str:
    """The C++ that runs one entry of a program. Optional parameters are absent unless their paths
    are in `present`."""
    binding = bind(program, block, generics or {})
    there = present_paths(manifest_of(binding), present)
    return generate(binding, entry, numerics, there, sizes, str(block or program.root)).text
