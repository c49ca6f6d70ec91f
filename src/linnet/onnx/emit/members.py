"""Parameters as initialisers or inputs, and states as values that calls read and replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.onnx.emit.dtypes import ONNX, concrete
from linnet.onnx.emit.graph import GraphBuilder
from linnet.onnx.emit.held import Held
from linnet.passes import Binding, ParamInfo, StateInfo
from linnet.types import DType, TensorType


def shape_of(type_: TensorType) -> tuple[int, ...]:
    sizes = tuple(d.constant for d in type_.dims)
    return tuple(s for s in sizes if s is not None)


@dataclass(slots=True)
class Members:
    """What an entry uses of its block. `tensors` hold parameters' data by path (None: they become
    inputs); a parameter used twice is one value, tied ones are one too."""

    builder: GraphBuilder
    binding: Binding
    present: frozenset[str]
    tensors: Mapping[str, Any] | None = None
    tied: Mapping[str, str] = field(default_factory=dict)
    params: dict[str, ir.Value] = field(default_factory=dict)
    inputs: dict[str, ir.Value] = field(default_factory=dict)  # states read
    states: dict[str, Held] = field(default_factory=dict)  # their values now
    written: set[str] = field(default_factory=set)
    appended: set[str] = field(default_factory=set)  # those that have to be updated in place
    infos: dict[str, ParamInfo | StateInfo] = field(init=False)

    def __post_init__(self) -> None:
        self.infos = {p.path: p for p in self.binding.params}
        self.infos.update({s.path: s for s in self.binding.states})

    def info(self, path: str) -> ParamInfo | StateInfo:
        if path not in self.infos:
            raise InternalError("onnx.emit", f"there is no member `{path}`")
        return self.infos[path]

    def param(self, path: str) -> Held:
        info = self.info(path)
        name = self.tied.get(path, path)
        if name not in self.params:
            self.params[name] = self._make(name, info.type)
        return Held.whole(self.params[name], concrete(info.type.dtype), info.type.dims)

    def _make(self, name: str, type_: TensorType) -> ir.Value:
        dtype = ONNX[concrete(type_.dtype)]
        shape = ir.Shape(shape_of(type_))
        value = ir.Value(name=self.builder.fresh(name), type=ir.TensorType(dtype), shape=shape)
        if self.tensors is not None:
            value.const_value = ir.Tensor(self.tensors[name], dtype=dtype, name=value.name)
            self.builder.keep(value)
        self.builder.fixed.add(id(value))
        return value

    # --- state ----------------------------------------------------------------------------------

    def read(self, path: str) -> Held:
        if path not in self.states:
            info = self.info(path)
            dtype = concrete(info.type.dtype)
            if path not in self.inputs:
                self.inputs[path] = ir.Value(
                    name=self.builder.fresh(path),
                    type=ir.TensorType(ONNX[dtype]),
                    shape=ir.Shape(shape_of(info.type)),
                )
            self.states[path] = Held.whole(self.inputs[path], dtype, info.type.dims)
        return self.states[path]

    def write(self, path: str, value: Held) -> None:
        self.states[path] = value
        self.written.add(path)

    def snapshot(self) -> dict[str, Held]:
        return dict(self.states)

    def dtype(self, path: str) -> DType:
        return concrete(self.info(path).type.dtype)
