"""From the text of a small program to its results as NumPy arrays, on any backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..matrix.backends import loader, to_numpy


class Runner:
    """Writes a program to a file of its own, loads it with a backend and runs an entry."""

    def __init__(self, folder: Path, numerics: str, backend: str = "torch") -> None:
        self.folder, self.numerics, self.backend = folder, numerics, backend

    def load(
        self,
        text: str,
        generics: Mapping[str, int | str] | None = None,
        weights: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        path = self.folder / "program.linnet"
        path.write_text(f"module program\n{text}", encoding="utf-8")
        given = {"numerics": self.numerics, **options}
        return loader(self.backend)(path, generics=generics or {}, weights=weights, **given)

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
    """Results as NumPy arrays, also inside tuples; scalars as Python numbers; bf16 as f32."""
    if isinstance(result, tuple):
        return tuple(map(values, result))
    if result is None:
        return None
    plain = to_numpy(result)
    plain = plain.astype(np.float32) if str(plain.dtype) == "bfloat16" else plain
    return plain.item() if plain.ndim == 0 else plain


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
