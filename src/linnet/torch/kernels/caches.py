"""Writes into caches `[B, H, S, D]`, in place; what lies outside the cache is not written."""

from __future__ import annotations

import torch


def write_span(cache: torch.Tensor, value: torch.Tensor, at: int) -> torch.Tensor:
    """value [B, H, N, D] at positions at .. at + N - 1 of every row"""
    first, last = max(at, 0), min(at + value.shape[2], cache.shape[2])
    if first < last:
        cache[:, :, first:last] = value[:, :, first - at : last - at]
    return cache


def write_rows(cache: torch.Tensor, value: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """value [B, H, 1, D], row b at its own position at[b]"""
    size = cache.shape[2]
    if size == 0:
        return cache
    rows = torch.arange(cache.shape[0], device=cache.device)
    inside = ((at >= 0) & (at < size))[:, None, None]
    at = at.clamp(0, size - 1)
    cache[rows, :, at] = torch.where(inside, value[:, :, 0], cache[rows, :, at])
    return cache


def write_slots(
    cache: torch.Tensor, value: torch.Tensor, slots: torch.Tensor, at: int
) -> torch.Tensor:
    """value [M, H, N, D] at positions at .. at + N - 1 of rows `slots`, which are distinct"""
    first, last = max(at, 0), min(at + value.shape[2], cache.shape[2])
    if first >= last or slots.numel() == 0 or cache.shape[0] == 0:
        return cache
    if cache.device.type == "cpu" and not torch.compiler.is_compiling():
        for row, slot in enumerate(slots.tolist()):
            if 0 <= slot < cache.shape[0]:
                cache[slot, :, first:last] = value[row, :, first - at : last - at]
        return cache
    inside = (slots >= 0) & (slots < cache.shape[0])
    source = spread_first(inside)
    slots = slots[source].clamp(0, cache.shape[0] - 1)
    new = value[source, :, first - at : last - at]
    cache[slots, :, first:last] = torch.where(inside.any(), new, cache[slots, :, first:last])
    return cache


def write_tokens(
    cache: torch.Tensor, value: torch.Tensor, rows: torch.Tensor, at: torch.Tensor
) -> torch.Tensor:
    """value [1, H, P, D], token p at position at[p] of row rows[p]"""
    count, _, size, _ = cache.shape
    if rows.numel() == 0 or count == 0 or size == 0:
        return cache
    inside = (rows >= 0) & (rows < count) & (at >= 0) & (at < size)
    source = spread_first(inside)
    rows, at = rows[source].clamp(0, count - 1), at[source].clamp(0, size - 1)
    new = value[0].transpose(0, 1)[source]
    cache[rows, :, at] = torch.where(inside.any(), new, cache[rows, :, at])
    return cache


def spread_first(inside: torch.Tensor) -> torch.Tensor:
    """0 .. n - 1, the first that is inside standing for each that is not: writes of one value to
    one place, where leaving them out would mean to wait for the device"""
    order = torch.arange(inside.shape[0], device=inside.device)
    return torch.where(inside, order, inside.to(torch.int32).argmax())
