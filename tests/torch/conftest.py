"""One thread: the tensors are tiny, and threads that wait for each other cost more than they do."""

from __future__ import annotations

from contextlib import suppress

import torch

# PyTorch's compiler imports it late and, now and then, while another thread imports `distutils`,
# which setuptools doesn't survive.
with suppress(ImportError):
    import setuptools  # noqa: F401

torch.set_num_threads(1)
