"""`export_model`: an entry of a program as an ONNX model, with or without its weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from linnet.backends.source import Source, bound, default_entry
from linnet.dims import Dim
from linnet.onnx.emit.entry import MIN_OPSET, Job, Written, write_entry
from linnet.onnx.emit.errors import ExportError
from linnet.onnx.natives.table import KERNELS, NUMERICS, selector, target
from linnet.passes import Binding, lower
from linnet.types import DTYPES, DType, GenericArg
from linnet.weights import manifest_of, open_weights, plan_load
from linnet.weights import read_bindings as read_bindings_file

DEFAULT_OPSET = 24
NEWEST_OPSET = onnx.defs.onnx_opset_version()
# Past this many bytes a file holds its weights beside it: protobuf ends at 2 GiB.
EXTERNAL = 1_900_000_000


def export_model(
    source: Source,
    path: str | Path | None = None,
    *,
    entry: str | None = None,
    generics: Mapping[str, int | str] | None = None,
    sizes: Mapping[str, Any] | None = None,
    weights: Any = None,
    bindings: Any = None,
    root: str | None = None,
    opset: int = DEFAULT_OPSET,
    numerics: str = "fast",
    runtime_operators: bool = False,
    external_data: bool | None = None,
    cast_dtype: bool = False,
    std_root: str | Path | None = None,
    present: Collection[str] = (),
) -> ir.Model:
    """One entry as an ONNX model, which is also written to `path` where that is given.

    `sizes` fixes generics of the entry itself; the others stay symbolic. With `weights` they are
    initialisers, in a file beside `path` when `external_data` says so or 2 GB make it necessary;
    without, parameters are inputs, and optional ones absent unless their paths are in `present`.
    `runtime_operators` allows ONNX Runtime's own operators. Raises `ExportError` naming the
    operation and its source line for what ONNX cannot say.
    """
    binding = bound(source, root, entry, generics or {}, std_root)
    name = default_entry(binding, entry)
    if name is None:
        known = ", ".join(sorted(binding.program.entries(binding.block))) or "none"
        raise ValueError(f"`entry` names one of {known}")
    tensors, tied, paths = _weights(binding, weights, bindings, cast_dtype, present)
    written = write(
        binding, name, sizes=_sizes(sizes), present=paths, tensors=tensors, tied=tied, opset=opset,
        numerics=numerics, runtime_operators=runtime_operators,
    )  # fmt: skip
    if path is not None:
        save(written.model, Path(path), external_data)
    return written.model


def write(
    binding: Binding,
    entry: str,
    *,
    sizes: Mapping[str, GenericArg] | None = None,
    present: frozenset[str],
    tensors: Mapping[str, Any] | None = None,
    tied: Mapping[str, str] | None = None,
    opset: int = DEFAULT_OPSET,
    numerics: str = "fast",
    runtime_operators: bool = False,
    absent: frozenset[str] = frozenset(),
    trusting: bool = False,
    appends: bool = False,
) -> Written:
    """The model of an entry and what its inputs and outputs stand for; see `Job` for the rest."""
    if not MIN_OPSET <= opset <= NEWEST_OPSET:
        raise ExportError(f"opset is from {MIN_OPSET} to {NEWEST_OPSET}, not {opset}")
    if numerics not in NUMERICS:
        raise ExportError(f"numerics is one of {', '.join(NUMERICS)}, not {numerics!r}")
    select = selector(numerics, target(opset, runtime_operators))
    lowered = lower(binding, [entry], present=present, select=select, sizes=sizes)
    job = Job(
        lowered,
        entry,
        present,
        opset,
        numerics == "exact",
        KERNELS,
        tensors,
        tied or {},
        absent,
        microsoft=runtime_operators,
        trusting=trusting,
        appends=appends,
    )
    return write_entry(job)


def _weights(
    binding: Binding, weights: Any, bindings: Any, cast_dtype: bool, present: Collection[str]
) -> tuple[dict[str, Any] | None, dict[str, str], frozenset[str]]:
    """Tensors by the first of their paths, the paths tied to those, and every path there is."""
    if weights is None:
        absent = {p.path for p in binding.params if p.optional} - set(present)
        return None, {}, frozenset(p.path for p in binding.params if p.path not in absent)
    return read_weights(binding, weights, bindings, cast_dtype)


def read_weights(
    binding: Binding, weights: Any, bindings: Any, cast_dtype: bool,
    placed: Callable[[Any], Any] = lambda array: array,
) -> tuple[dict[str, Any], dict[str, str], frozenset[str]]:  # fmt: skip
    """Tensors by the first of their paths, the paths tied to those, and every path there is; each
    tensor is `placed` as soon as it is read."""
    tensors: dict[str, Any] = {}
    tied: dict[str, str] = {}
    with open_weights(weights) as opened:
        lines = None if bindings is None else read_bindings_file(bindings)
        plan = plan_load(manifest_of(binding), opened, lines, cast_dtype)
        for item in plan.items:
            first, *others = item.paths
            tensors[first] = placed(plan.read(item))
            tied.update(dict.fromkeys(others, first))
    return tensors, tied, frozenset((*tensors, *tied))


def _sizes(sizes: Mapping[str, Any] | None) -> dict[str, GenericArg] | None:
    if not sizes:
        return None
    return {name: _argument(name, value) for name, value in sizes.items()}


def _argument(name: str, value: Any) -> GenericArg:
    if isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    if isinstance(value, DType | Dim):
        return value
    if isinstance(value, list | tuple):
        return tuple(v if isinstance(v, Dim) else Dim.of(int(v)) for v in value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Dim.of(value)
    raise ExportError(f"the generic `{name}` is a size, a list of sizes or a dtype, not {value!r}")


def save(model: ir.Model, path: Path, external_data: bool | None = None) -> None:
    """Writes the model; large weights go to `<name>.data` beside it."""
    held = [v.const_value for v in model.graph.initializers.values()]
    total = sum(t.nbytes for t in held if t is not None)
    if external_data or (external_data is None and total > EXTERNAL):
        ir.save(model, path, external_data=f"{path.name}.data")
    else:
        ir.save(model, path)


def generate_text(
    binding: Binding, entry: str, *, sizes: Mapping[str, GenericArg] | None = None,
    opset: int = DEFAULT_OPSET, numerics: str = "fast",
) -> str:  # fmt: skip
    """The model of an entry as text, all its parameters present, without their values."""
    present = frozenset(p.path for p in binding.params)
    written = write(binding, entry, sizes=sizes, present=present, opset=opset, numerics=numerics)
    return str(ir.to_onnx_text(written.model, exclude_initializers=True))
