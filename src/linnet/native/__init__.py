"""The native backend: a model as machine code of this CPU, compiled by the system's C++ compiler.

    model = linnet.native.load("model.linnet", generics={...}, weights="model.safetensors")
    logits = model(tokens)

Needs NumPy alone, and a C++ compiler the first time a model's entry runs.
"""

from __future__ import annotations

from linnet.backends.errors import InputError, StateError
from linnet.native.errors import NativeError, RunError
from linnet.native.runtime.load import generate_source, load
from linnet.native.runtime.model import Model

__all__ = [
    "InputError", "Model", "NativeError", "RunError", "StateError", "generate_source", "load",
]  # fmt: skip
