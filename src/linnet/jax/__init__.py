"""The JAX backend: readable generated source, and programs compiled through StableHLO.

import linnet.jax
decode = linnet.jax.load_source("package/src/lib.linnet", entry="decode", weights="folder")
logits, state = decode(token, pos, state=state)
"""

from linnet.backends.errors import InputError, StateError, installed

with installed("jax", "jax", "jaxlib"):
    from linnet.jax.runtime.entry import Entry
    from linnet.jax.runtime.load import (
        generate_source,
        load,
        load_model,
        load_source,
        load_source_model,
    )
    from linnet.jax.runtime.model import Model
    from linnet.jax.stablehlo import stablehlo

__all__ = [
    "Entry",
    "InputError",
    "Model",
    "StateError",
    "generate_source",
    "load",
    "load_model",
    "load_source",
    "load_source_model",
    "stablehlo",
]
