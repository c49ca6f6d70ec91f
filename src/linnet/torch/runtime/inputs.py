"""Callers' values as the tensors and Python numbers that generated code takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from linnet.backends.inputs import Reader as AnyReader
from linnet.backends.inputs import numpy_dtype
from linnet.backends.signature import Signature
from linnet.torch.emit.dtypes import STORED, WIDE
from linnet.types import DType, GenericArg, TensorType, Type

TORCH: dict[DType, torch.dtype] = {d: getattr(torch, name) for d, name in STORED.items()}
_LINNET = {dtype: linnet for linnet, dtype in TORCH.items()}


class Tensors:
    """What generated PyTorch code takes for values that fit."""

    def own(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def scalar(self, value: int | float | bool, dtype: DType) -> int | float | bool:
        return value

    def array(self, value: Any, dtype: DType) -> torch.Tensor:
        array = np.ascontiguousarray(value).reshape(value.shape)
        if not array.flags.writeable or min(array.strides, default=0) < 0:  # along one element
            array = array.copy()
        if dtype is DType.BF16:
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
        return torch.from_numpy(array.view(numpy_dtype(dtype)))  # C has two of 64 bits, PyTorch one

    def absent(self, type_: Type, generics: Mapping[Any, GenericArg]) -> None:
        return None

    def present(self, value: Any, nested: bool) -> Any:
        return (value,) if nested else value


class Reader(AnyReader):
    """Checks one call's inputs, and brings them to the model's device."""

    def __init__(self, signature: Signature, device: torch.device) -> None:
        super().__init__(signature, Tensors())
        self.device = device

    def _value(self, type_: Type, value: Any, what: str, top: bool = False) -> Any:
        made = super()._value(type_, value, what, top)
        if not top or not isinstance(type_, TensorType) or not isinstance(made, torch.Tensor):
            return made
        return made if made.ndim else self._on_host(type_, made)

    def _on_host(self, type_: TensorType, tensor: torch.Tensor) -> int | float | bool:
        """A scalar, also one over an empty pack, as the Python number that generated code takes."""
        dtype = self._dtype(type_, None, f"`{self.slot.name}`")
        number: int | float | bool = tensor.item()
        if dtype is DType.U64:
            number = int(number) % 2**64
        if not dtype.is_float:
            self.host[self.slot.name] = number
        return number

    def _tensor(self, type_: TensorType, value: Any, what: str) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            self._check(type_, value, what)
            tensor = value
        else:
            tensor = super()._tensor(type_, value, what)
        dtype = _LINNET[tensor.dtype]
        tensor = tensor.to(self.device)
        if dtype in WIDE:
            tensor = tensor.view(torch.int64) if dtype is DType.U64 else tensor.to(torch.int64)
        return tensor

    def _check(self, type_: TensorType, tensor: torch.Tensor, what: str) -> None:
        found = _LINNET.get(tensor.dtype)
        self._same_dtype(type_, found, str(tensor.dtype), what, f"{self.slot.name}.to(torch.{{}})")
        self._dense(tensor, what)
        self._shape(type_, tuple(tensor.shape), what)
        whole = type_ is self.slot.bound and not tensor.dtype.is_floating_point
        if whole and tensor.device.type == "cpu":
            self.host[self.slot.name] = tensor.detach().numpy()
