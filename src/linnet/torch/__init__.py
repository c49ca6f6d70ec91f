"""The PyTorch backend: readable generated source, native kernels, and the module users hold.

import linnet.torch
model = linnet.torch.load("package/src/lib.linnet", generics={"H": 64}, weights="folder")
logits = model(tokens)
"""

from linnet.backends.errors import InputError, RunError, StateError, installed

with installed("torch", "torch"):
    from linnet.torch.runtime.load import generate_source, load
    from linnet.torch.runtime.module import Model

__all__ = ["InputError", "Model", "RunError", "StateError", "generate_source", "load"]
