"""Weights: what a bound program needs, what a file holds, and how one becomes the other.

The contract in one place, for a backend that loads a model:

    manifest = manifest_of(bind(program, "Model", generics))
    # or Manifest(params=(ParamSpec("layers.0.mlp.up.weight", (96, 64), "bf16"), ...),
    #             arrays={"layers": 2})                # lengths of the bound sub arrays
    with open_weights(source) as weights:              # file, folder, .gguf or a mapping
        bindings = read_bindings(path_or_mapping)      # or None: the path is the tensor's name
        plan = plan_load(manifest, weights, bindings, cast_dtype=False)   # raises WeightError
        plan.absent                                    # optional parameters that stay `none`
        for item in plan.items:                        # file order; item.paths share one tensor
            tensor = plan.read_torch(item)             # or plan.read(item) for NumPy

- Nothing of a tensor's data is read before `plan_load` has returned; a `WeightError` carries one
  diagnostic for every mismatch there is.
- Every read fills memory of its own with `read` system calls: files are never mapped, so no page
  of a file counts as this process's memory, and a file cut short meanwhile is an error instead of
  a crash. Conversion goes by pieces of a few MiB. `plan.read_torch_into(item, view)` fills a part
  of a larger tensor, so that joined weights need no second copy.
- dtypes are Linnet's names; bf16 arrays use `ml_dtypes.bfloat16`. A scalar has shape `()`.
- torch and gguf are imported when a torch tensor or a GGUF file is asked for, not before.
"""

from __future__ import annotations

from linnet.weights.bindings import Bindings, read_bindings
from linnet.weights.bound import manifest_of
from linnet.weights.errors import WEIGHT_CODES, WeightError
from linnet.weights.manifest import Manifest, ParamSpec, StateSpec
from linnet.weights.open import open_weights
from linnet.weights.plan import LoadItem, LoadPlan, plan_load
from linnet.weights.source import TensorInfo, WeightSource

__all__ = [
    "WEIGHT_CODES",
    "Bindings",
    "LoadItem",
    "LoadPlan",
    "Manifest",
    "ParamSpec",
    "StateSpec",
    "TensorInfo",
    "WeightError",
    "WeightSource",
    "manifest_of",
    "open_weights",
    "plan_load",
    "read_bindings",
]
