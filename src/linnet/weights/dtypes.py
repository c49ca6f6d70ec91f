"""Linnet's dtype names beside NumPy's and the ones checkpoint formats use."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

NUMPY: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype("<i1"),
    "i16": np.dtype("<i2"),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
    "u8": np.dtype("<u1"),
    "u16": np.dtype("<u2"),
    "u32": np.dtype("<u4"),
    "u64": np.dtype("<u8"),
    "f16": np.dtype("<f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype("<f4"),
    "f64": np.dtype("<f8"),
}
NAMES: dict[np.dtype[Any], str] = {dtype: name for name, dtype in NUMPY.items()}
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})

TORCH: dict[str, str] = {
    "bool": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}
"""Attribute of the `torch` module by Linnet's name."""

SAFETENSORS: dict[str, tuple[str, int]] = {
    "BOOL": ("bool", 8),
    "I8": ("i8", 8),
    "I16": ("i16", 16),
    "I32": ("i32", 32),
    "I64": ("i64", 64),
    "U8": ("u8", 8),
    "U16": ("u16", 16),
    "U32": ("u32", 32),
    "U64": ("u64", 64),
    "F16": ("f16", 16),
    "BF16": ("bf16", 16),
    "F32": ("f32", 32),
    "F64": ("f64", 64),
    "F4": ("F4", 4),
    "F6_E2M3": ("F6_E2M3", 6),
    "F6_E3M2": ("F6_E3M2", 6),
    "F8_E4M3": ("F8_E4M3", 8),
    "F8_E5M2": ("F8_E5M2", 8),
    "F8_E8M0": ("F8_E8M0", 8),
    "F8_E4M3FNUZ": ("F8_E4M3FNUZ", 8),
    "F8_E5M2FNUZ": ("F8_E5M2FNUZ", 8),
    "C64": ("C64", 64),
}
"""Format name to (Linnet's name or, where Linnet has no such dtype, the same name; bits)."""


def castable(source: str, target: str) -> bool:
    """Whether `cast_dtype=True` may turn one dtype into the other: floats among themselves."""
    return source in FLOATS and target in FLOATS
