"""`load_model`: from a source and weights to a model on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from linnet.backends.present import check_present, present_paths
from linnet.backends.source import Source, bound, default_entry
from linnet.ir.semantics import NUMPY
from linnet.onnx.emit.dtypes import concrete
from linnet.onnx.emit.members import shape_of
from linnet.onnx.export import DEFAULT_OPSET, check_options, read_weights
from linnet.onnx.runtime.memory import Memory
from linnet.onnx.runtime.model import Model
from linnet.onnx.runtime.session import Options, known_providers, known_threads
from linnet.weights import manifest_of


def load_model(
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
    opset: int = DEFAULT_OPSET,
    providers: Collection[str] = ("CPUExecutionProvider",),
    threads: int = 0,
) -> Model:
    """Loads a checked program with its weights; every entry runs on ONNX Runtime.

    Without `weights` every parameter is zero; optional ones are then absent unless their paths are
    in `present`. `threads` limits ONNX Runtime's own (0: as it likes). Raises `CompileError`,
    `BindError` or `WeightError` with every problem found, and `ExportError` when an entry is first
    called that ONNX cannot say.
    """
    check_options(opset, numerics)
    check_present(weights, present)
    options = Options(numerics == "exact", known_providers(providers), known_threads(threads))
    binding = bound(source, root, entry, generics or {}, std_root)
    default = default_entry(binding, entry)
    memory = Memory(large=True)
    tied: dict[str, str] = {}
    if weights is None:
        paths = present_paths(manifest_of(binding), present)
        tensors = {
            p.path: memory.zeros(shape_of(p.type), NUMPY[concrete(p.type.dtype)])
            for p in binding.params
            if p.path in paths
        }
    else:
        tensors, tied, _ = read_weights(binding, weights, bindings, cast_dtype, memory.copy)
    return Model(binding, tensors, tied, default, numerics, opset, options)
