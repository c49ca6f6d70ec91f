"""Likelihoods from logits, for the perplexity report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def losses(logits: Any, tokens: Sequence[int]) -> list[float]:
    """The negative log likelihood of each token but the first; summed in f64."""
    rows = np.asarray(logits)[: len(tokens) - 1].astype(np.float32)
    rows -= rows.max(axis=1, keepdims=True)
    chosen = rows[np.arange(len(rows)), np.asarray(tokens[1:])].astype(np.float64)
    totals = np.log(np.exp(rows, out=rows).sum(axis=1, dtype=np.float64))
    return [float(value) for value in totals - chosen]
