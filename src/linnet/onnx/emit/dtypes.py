"""Linnet's dtypes in ONNX, and which of them the operators compute in.

ONNX has every dtype as storage, but runtimes compute in few of them. `carrier` is the dtype that
an operator's operands are converted to and its result from: f16 and bf16 go through f32 and are
rounded once a result, which is what the language says; narrow integers go through i64 and wrap on
the way back; u64 goes through i64 where its bits alone matter.
"""

from __future__ import annotations

import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.types import AnyDType, DType, TensorType, Type

ONNX: dict[DType, ir.DataType] = {
    DType.BOOL: ir.DataType.BOOL,
    DType.I8: ir.DataType.INT8,
    DType.I16: ir.DataType.INT16,
    DType.I32: ir.DataType.INT32,
    DType.I64: ir.DataType.INT64,
    DType.U8: ir.DataType.UINT8,
    DType.U16: ir.DataType.UINT16,
    DType.U32: ir.DataType.UINT32,
    DType.U64: ir.DataType.UINT64,
    DType.F16: ir.DataType.FLOAT16,
    DType.BF16: ir.DataType.BFLOAT16,
    DType.F32: ir.DataType.FLOAT,
    DType.F64: ir.DataType.DOUBLE,
}

HALF = frozenset({DType.F16, DType.BF16})

_D = DType
# The dtypes in which ONNX Runtime's CPU kernels compute, by operator; others go through a carrier.
KERNELS: dict[str, frozenset[DType]] = {
    "arithmetic": frozenset({_D.I32, _D.I64, _D.F32, _D.F64}),
    "extreme": frozenset({_D.I32, _D.I64, _D.U32, _D.U64, _D.F32, _D.F64}),
    "compare": frozenset(DType) - HALF,
    "where": frozenset({_D.I8, _D.I32, _D.I64, _D.U8, _D.U32, _D.F32, _D.F64}),
    "expand": frozenset(DType) - {_D.BF16},
    "reduce": frozenset({_D.I32, _D.I64, _D.F32, _D.F64}),
    "matmul": frozenset({_D.I32, _D.I64, _D.F32, _D.F64}),
}


def carrier(group: str, dtype: DType) -> DType:
    """The dtype in which an operator of `group` computes on `dtype`."""
    if dtype in KERNELS[group]:
        return dtype
    if dtype in HALF:
        return DType.F32
    if dtype is DType.BOOL:
        return DType.I32
    return DType.I64


def concrete(dtype: AnyDType) -> DType:
    if not isinstance(dtype, DType):
        raise InternalError("onnx.emit", f"the dtype {dtype} was not bound")
    return dtype


def tensor(type_: Type) -> TensorType:
    if not isinstance(type_, TensorType):
        raise InternalError("onnx.emit", f"a tensor is needed, not {type_}")
    return type_


def dtype_of(type_: Type) -> DType:
    return concrete(tensor(type_).dtype)
