"""Looks into axes and extremes along them, with what has no meaning refused."""

from __future__ import annotations

from typing import Any

import torch


def picked(x: torch.Tensor, axis: int, index: torch.Tensor) -> torch.Tensor:
    """x at `index` along an axis, the index's axes in its place; one outside is refused"""
    rows = x.index_select(axis, index.reshape(-1))
    return rows.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1 :])


def picked_inside(x: torch.Tensor, axis: int, index: torch.Tensor) -> torch.Tensor:
    """as `picked`, in compiled code, which would count negative numbers from the axis's end"""
    return picked(x, axis, not_negative(index, x.shape[axis]))


def position(index: int) -> int:
    """`index`, refused where it is negative, which Python would count from the end"""
    if index < 0:
        raise IndexError(f"index {index} lies outside its axis")
    return index


def not_negative(index: torch.Tensor, extent: int) -> torch.Tensor:
    """`index` with negative numbers, which PyTorch would count from the end, past the axis's end"""
    return torch.where(index < 0, extent, index)


def reduced_min(x: torch.Tensor, dims: Any) -> torch.Tensor:
    """the smallest along `dims`, which may have no elements where the result has none"""
    return no_elements(x, dims) if x.numel() == 0 else x.amin(dims)


def reduced_max(x: torch.Tensor, dims: Any) -> torch.Tensor:
    """the largest along `dims`, which may have no elements where the result has none"""
    return no_elements(x, dims) if x.numel() == 0 else x.amax(dims)


def no_elements(x: torch.Tensor, dims: Any) -> torch.Tensor:
    """an empty minimum or maximum of no elements"""
    made = x.sum(dims, dtype=x.dtype)
    if made.numel() > 0:
        raise IndexError("the minimum or maximum of no elements has no value")
    return made
