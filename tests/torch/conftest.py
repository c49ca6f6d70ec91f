"""One thread: the tensors are tiny, and threads that wait for each other cost more than they do."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
