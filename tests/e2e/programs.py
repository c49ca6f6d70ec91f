"""From the text of a small program to its results as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import linnet.torch
from linnet.torch import Model


class Runner:
    """Writes a program to a file of its own, loads it with PyTorch and runs an entry."""

    def __init__(self, folder: Path, numerics: str) -> None:
        self.folder, self.numerics = folder, numerics

    def load(
        self,
        text: str,
        generics: Mapping[str, int | str] | None = None,
        weights: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Model:
        path = self.folder / "program.linnet"
        path.write_text(f"module program\n{text}", encoding="utf-8")
        given = {"numerics": self.numerics, "compile": False, **options}
        return linnet.torch.load(path, generics=generics or {}, weights=weights, **given)

    def __call__(
        self,
        text: str,
        inputs: Sequence[Any] = (),
        entry: str = "main",
        sizes: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """The result of one call; `sizes` are the entry's own generics."""
        return values(self.load(text, **options).run_entry(entry, list(inputs), generics=sizes))


def values(result: Any) -> Any:
    """Tensors as NumPy arrays, also inside tuples; scalars as Python numbers; bf16 as f32."""
    if isinstance(result, torch.Tensor):
        plain = result.detach()
        plain = plain.float() if plain.dtype == torch.bfloat16 else plain
        return plain.item() if plain.ndim == 0 else plain.numpy()
    return tuple(map(values, result)) if isinstance(result, tuple) else result


def floats(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Normal f32 values."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def same(got: Any, want: Any, within: float = 1e-6) -> None:
    """Equal in structure, shape and dtype, and in value but for float rounding."""
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other, within)
        return
    if want is None or isinstance(want, bool | int):
        assert got == want and type(got) is type(want)
        return
    if isinstance(want, np.ndarray):
        assert isinstance(got, np.ndarray) and got.dtype == want.dtype, (got, want.dtype)
        assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=within, atol=within)
