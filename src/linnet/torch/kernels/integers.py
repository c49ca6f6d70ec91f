"""Integer arithmetic as Linnet means it, where PyTorch means something else."""

from __future__ import annotations

from typing import Any

import torch

from linnet.torch.kernels.lookups import reduced_max, reduced_min


def int_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a / b truncated toward zero; the smallest integer by -1 wraps to itself"""
    safe = torch.where(b == -1, 1, b)
    return torch.where(b == -1, -a, torch.div(a, safe, rounding_mode="trunc"))


def int_remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a - b * (a / b), with the sign of a"""
    return torch.fmod(a, torch.where(b == -1, 1, b))


def u64_min(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """the smaller of two u64 held as the bits of i64"""
    return torch.where((a ^ -(2**63)) < (b ^ -(2**63)), a, b)


def u64_max(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """the larger of two u64 held as the bits of i64"""
    return torch.where((a ^ -(2**63)) < (b ^ -(2**63)), b, a)


def u64_reduce_min(x: torch.Tensor, dims: Any) -> torch.Tensor:
    """the smallest along `dims` of u64 held as the bits of i64"""
    return reduced_min(x ^ -(2**63), dims) ^ -(2**63)


def u64_reduce_max(x: torch.Tensor, dims: Any) -> torch.Tensor:
    """the largest along `dims` of u64 held as the bits of i64"""
    return reduced_max(x ^ -(2**63), dims) ^ -(2**63)


def u64_shift_right(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a >> b with zeros coming in, for u64 held as the bits of i64"""
    inside = (b > 0) & (b < 64)
    shift = torch.where(inside, b, 1)
    moved = torch.bitwise_right_shift(a, shift) & ~(torch.full_like(a, -1) << (64 - shift))
    return torch.where(inside, moved, torch.where(b == 0, a, 0))


def u64_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a / b of two u64 held as the bits of i64: half of a over b, doubled, is at most 1 too small
    (Warren, Hacker's Delight, 9-3); b past i64 goes into a once or not at all"""
    large, sign = b < 0, -(2**63)
    safe = torch.where(large, 1, b)
    low = torch.div((a >> 1) & (2**63 - 1), safe, rounding_mode="trunc") << 1
    more = ((a - low * safe) ^ sign) >= (safe ^ sign)
    return torch.where(large, ((a ^ sign) >= (b ^ sign)).to(torch.int64), low + more)


def u64_remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a - b * (a / b) of two u64 held as the bits of i64"""
    return a - b * u64_divide(a, b)


def u64_to_float(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """the value of u64 bits; halved before rounding where the top bit is set, that bit kept odd"""
    half = ((x >> 1) & (2**63 - 1)) | (x & 1)
    return torch.where(x >= 0, x.to(dtype), half.to(dtype) * 2)


def float_to_u64(x: torch.Tensor) -> torch.Tensor:
    """truncated toward zero, as the bits of i64; outside the range its nearest value, NaN 0"""
    wide = x.double().nan_to_num(0.0).clamp(min=0.0)
    large = wide >= 2.0**63
    low = torch.where(large, (wide - 2.0**63).clamp(0.0, 2.0**63 - 1024), wide).to(torch.int64)
    return torch.where(wide >= 2.0**64, -1, torch.where(large, low ^ -(2**63), low))


def float_to_i64(x: torch.Tensor) -> torch.Tensor:
    """truncated toward zero; outside the range its nearest value, NaN 0"""
    wide = x.double().nan_to_num(0.0).clamp(min=-(2.0**63))
    past = wide >= 2.0**63
    return torch.where(past, 2**63 - 1, torch.where(past, 0.0, wide).to(torch.int64))


def float_to_integer(x: torch.Tensor, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    """truncated toward zero; outside low .. high the nearest of them, NaN 0"""
    return x.double().nan_to_num(0.0).clamp(low, high).to(dtype)


def rounded_once(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """f64 or integers to f16 or bf16; by way of an f32 whose last bit says that it is inexact"""
    wide = x.double()
    single = wide.float()
    inexact = (single.double() != wide) & single.isfinite()
    even = (single.contiguous().view(torch.int32) & 1) == 0
    toward = torch.where(wide > single, torch.inf, -torch.inf)
    return torch.where(inexact & even, torch.nextafter(single, toward), single).to(dtype)


def widened(x: torch.Tensor | None) -> torch.Tensor | None:
    """an optional u16, u32 or u64 tensor as i64 holds it"""
    if x is None:
        return None
    return x.view(torch.int64) if x.dtype == torch.uint64 else x.to(torch.int64)
