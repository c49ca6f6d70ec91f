"""What every kind of weights looks like to a loader: names, facts, and reads into memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from linnet.weights.dtypes import NUMPY, TORCH

if TYPE_CHECKING:
    import torch

PIECE_BYTES = 8 << 20
"""How much is converted at a time: enough to be quick, too little to show in peak memory."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Facts about one stored tensor, known without reading it.

    `dtype` is what a read without a wish yields (`f32` for quantised blocks); `stored` is the
    format's own name. `converts` says that the format is mere storage for floats (GGUF), so that
    another float dtype needs no `cast_dtype`. `nbytes` counts the stored bytes. `readable` is
    False for a dtype that Linnet doesn't have.
    """

    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    stored: str
    converts: bool = False
    readable: bool = True


class WeightSource(ABC):
    """Named tensors to read from. Close it, or use it in a `with` statement."""

    label: str
    """What messages call it: a file's or folder's name."""

    @abstractmethod
    def names(self) -> list[str]:
        """Every tensor's name, in the order of the file."""

    @abstractmethod
    def info(self, name: str) -> TensorInfo:
        """Facts about one tensor; `KeyError` for a name that isn't there."""

    @abstractmethod
    def pieces(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        """The tensor's elements in row-major order, as flat arrays of `info(name).dtype`."""

    def fill_bytes(self, name: str, out: np.ndarray[Any, Any]) -> bool:
        """Fill a flat uint8 array with the tensor as it is stored; False where that isn't it."""
        return False

    def blocks(self, name: str) -> np.ndarray[Any, Any] | None:
        """The bytes of a quantised tensor's blocks, rows in order; None for other tensors."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Let go of files. Tensors read before stay valid."""

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_into(self, name: str, out: np.ndarray[Any, Any]) -> None:
        """Fill a contiguous array of the tensor's size, converting to the array's dtype."""
        info = self.info(name)
        if not out.flags.c_contiguous or out.shape != info.shape:
            raise ValueError(f"needs a contiguous array of shape {info.shape}, not {out.shape}")
        flat = out.reshape(-1)
        if out.dtype == NUMPY[info.dtype] and self.fill_bytes(name, flat.view(np.uint8)):
            return
        at = 0
        for piece in self.pieces(name):
            with np.errstate(over="ignore"):  # f32 beyond f16's range is infinite, as in a cast
                flat[at : at + piece.size] = piece
            at += piece.size
        if at != flat.size:
            raise ValueError(f"{self.label} gave {at} of {flat.size} elements of {name}")

    def read(self, name: str, dtype: str | None = None) -> np.ndarray[Any, Any]:
        """The tensor as a new array of its own memory, in `dtype` or as it is."""
        info = self.info(name)
        out = np.empty(info.shape, NUMPY[dtype or info.dtype])
        self.read_into(name, out)
        return out

    def read_torch(self, name: str, dtype: str | None = None, device: Any = "cpu") -> torch.Tensor:
        """The tensor as a new torch tensor of its own memory, in `dtype` or as it is."""
        import torch

        info = self.info(name)
        kind = getattr(torch, TORCH[dtype or info.dtype])
        out = torch.empty(info.shape, dtype=kind)
        self.read_torch_into(name, out)
        return out if str(device) == "cpu" else out.to(device)

    def read_torch_into(self, name: str, out: torch.Tensor) -> None:
        """Fill an existing tensor or a view of one, converting to its dtype."""
        import torch

        with torch.no_grad():
            if out.device.type == "cpu" and out.is_contiguous():
                self.read_into(name, torch_as_numpy(out))
                return
            held = torch.empty(out.shape, dtype=out.dtype)
            self.read_into(name, torch_as_numpy(held))
            out.copy_(held)


def torch_as_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A NumPy view of a CPU tensor's memory, bf16 as `ml_dtypes.bfloat16`."""
    import torch

    plain = tensor.detach()
    if plain.dtype == torch.bfloat16:
        bits: np.ndarray[Any, Any] = plain.view(torch.uint16).numpy()
        return bits.view(NUMPY["bf16"])
    array: np.ndarray[Any, Any] = plain.numpy()
    return array
