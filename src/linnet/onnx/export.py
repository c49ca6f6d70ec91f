"""`export_model`: an entry of a program as an ONNX model, with or without its weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from linnet.backends.present import check_present, present_paths
from linnet.backends.source import Source, bound, default_entry
from linnet.diagnostics.escape import escape_text
from linnet.onnx.emit.entry import MIN_OPSET, Job, Written, write_entry
from linnet.onnx.emit.errors import ExportError
from linnet.onnx.natives.table import KERNELS, NUMERICS, selector, target
from linnet.onnx.saving import check_place, save
from linnet.passes import Binding, lower
from linnet.weights import manifest_of, open_weights, plan_load
from linnet.weights import read_bindings as read_bindings_file

DEFAULT_OPSET = 24
NEWEST_OPSET = onnx.defs.onnx_opset_version()


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

    `sizes` fixes generics of the entry itself: sizes, lists of sizes, dtypes; other sizes stay
    symbolic. The files appear whole or not at all. With `weights` they are
    initialisers, in a file beside `path` when `external_data` says so or 2 GB make it necessary;
    without, parameters are inputs, and optional ones absent unless their paths are in `present`.
    `runtime_operators` allows ONNX Runtime's own operators. Raises `ExportError` naming the
    operation and its source line for what ONNX cannot say, or naming the file that cannot be
    written; `BindError` for `sizes` that do not fit the entry.
    """
    check_options(opset, numerics)
    check_present(weights, present)
    if path is not None:
        check_place(Path(path), [source, weights, bindings])
    binding = bound(source, root, entry, generics or {}, std_root)
    name = default_entry(binding, entry)
    if name is None:
        known = ", ".join(sorted(binding.program.entries(binding.block))) or "none"
        raise ValueError(f"`entry` names one of {known}")
    tensors, tied, paths = _weights(binding, weights, bindings, cast_dtype, present)
    written = write(
        binding, name, sizes=sizes, present=paths, tensors=tensors, tied=tied, opset=opset,
        numerics=numerics, runtime_operators=runtime_operators,
    )  # fmt: skip
    if not written.model.graph.outputs:
        raise ExportError(f"the entry `{name}` gives nothing and changes no state: a model of it "
                          "would have no outputs")  # fmt: skip
    if path is not None:
        save(written.model, Path(path), external_data)
    return written.model


def write(
    binding: Binding,
    entry: str,
    *,
    sizes: Mapping[str, Any] | None = None,
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
    check_options(opset, numerics)
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
        return None, {}, present_paths(manifest_of(binding), present)
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


def check_options(opset: Any, numerics: Any) -> None:
    """Raises `ExportError` for an opset or numerics that there are not."""
    whole = isinstance(opset, int) and not isinstance(opset, bool)
    if not whole or not MIN_OPSET <= opset <= NEWEST_OPSET:
        shown = escape_text(repr(opset), 40)
        raise ExportError(f"opset is from {MIN_OPSET} to {NEWEST_OPSET}, not {shown}")
    if numerics not in NUMERICS:
        shown = escape_text(repr(numerics), 40)
        raise ExportError(f"numerics is one of {', '.join(NUMERICS)}, not {shown}")


def generate_text(
    binding: Binding, entry: str, *, sizes: Mapping[str, Any] | None = None,
    opset: int = DEFAULT_OPSET, numerics: str = "fast", present: Collection[str] = (),
) -> str:  # fmt: skip
    """What `export_model` writes without weights, as text."""
    paths = present_paths(manifest_of(binding), present)
    written = write(binding, entry, sizes=sizes, present=paths, opset=opset, numerics=numerics)
    return str(ir.to_onnx_text(written.model, exclude_initializers=True))
