"""Attention over heads `[B, H, S, D]`, each key/value head serving consecutive query heads.

A query that sees no key gets the plain mean of the values, as the library's bodies say. A mask is
therefore added as -1e30, which leaves such a row with equal scores, and never as -inf.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    bias: torch.Tensor | None = None,
    causal: bool = False,
) -> torch.Tensor:
    """softmax(scale * q k^T + bias) v"""
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=bias, is_causal=causal, scale=scale, enable_gqa=grouped
    )


def attend_masked(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, mask: torch.Tensor
) -> torch.Tensor:
    """attention under a mask [Q, K] or [B, Q, K]"""
    if mask.dim() == 3:
        mask = mask[:, None]
    differentiated = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)
    if differentiated or q.dtype == torch.float16:  # -1e30 is no f16
        sees = mask.any(-1, keepdim=True)
        # Equal scores that no gradient passes through, as the body has for a query without keys.
        return attend(torch.where(sees, q, 0.0), k, v, scale, mask | ~sees)
    bias = torch.where(mask, 0.0, torch.full((), -1e30, dtype=q.dtype, device=q.device))
    return attend(q, k, v, scale, bias)


def mean_value(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """the plain mean of the values [B, Hk, K, D], for each query head: [B, H, 1, D]"""
    mean = v.float().mean(2, keepdim=True).to(v.dtype)
    return mean.repeat_interleave(q.shape[1] // v.shape[1], 1)


def attend_upto(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, last: int
) -> torch.Tensor:
    """every query sees the keys 0 .. last"""
    if last < 0:
        return mean_value(q, v).expand(q.shape).clone()
    return attend(q, k[:, :, : last + 1], v[:, :, : last + 1], scale)


def attend_from(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, start: int
) -> torch.Tensor:
    """query i sees the keys 0 .. start + i; what lies past the last one is not read"""
    count, size = q.shape[2], k.shape[2]
    end = min(start + count, size)
    if start == 0 and end == count:
        return attend(q, k[:, :, :end], v[:, :, :end], scale, causal=True)
    if count == 1:
        return attend_upto(q, k, v, scale, start)
    if start < 0:
        end = size
    spots = torch.arange(end, device=q.device)
    mask = spots <= torch.arange(start, start + count, device=q.device)[:, None]
    return attend_masked(q, k[:, :, :end], v[:, :, :end], scale, mask)


def attend_each_upto(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, last: torch.Tensor
) -> torch.Tensor:
    """query i sees the keys 0 .. last[i]; what lies past the largest is not read"""
    if last.numel() == 0:
        return torch.zeros_like(q)
    low, high = (int(n) for n in torch.stack(last.aminmax()).tolist())
    if low < 0:
        spots = torch.arange(k.shape[2], device=q.device)
        return attend_masked(q, k, v, scale, spots <= last[:, None])
    end = min(high + 1, k.shape[2])
    spots = torch.arange(end, device=q.device)
    return attend_masked(q, k[:, :, :end], v[:, :, :end], scale, spots <= last[:, None])


def attend_rows_upto(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, last: torch.Tensor
) -> torch.Tensor:
    """the queries of sequence b see its keys 0 .. last[b]"""
    if q.device.type != "cpu":
        end = min(max(int(last.max()) + 1, 1), k.shape[2]) if last.numel() else 0
        if int(last.min()) < 0 if last.numel() else False:
            end = k.shape[2]
        spots = torch.arange(end, device=q.device)
        mask = (spots <= last[:, None])[:, None]
        return attend_masked(q, k[:, :, :end], v[:, :, :end], scale, mask)
    rows = [
        attend_upto(q[b : b + 1], k[b : b + 1], v[b : b + 1], scale, n)
        for b, n in enumerate(last.tolist())
    ]
    return torch.cat(rows) if rows else torch.zeros_like(q)


def page_places(pages: torch.Tensor, size: int, count: int) -> torch.Tensor:
    """the pool's places of positions 0 .. count - 1 of rows whose pages are given: [..., count]"""
    needed = -(-count // size)
    within = torch.arange(size, device=pages.device)
    places = pages[..., :needed, None].to(torch.int64) * size + within
    return places.flatten(-2)[..., :count]


def attend_paged(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor,
    positions: torch.Tensor, scale: float, size: int,
) -> torch.Tensor:  # fmt: skip
    """one query a row over its positions 0 .. positions[b], which lie in the pages of its row"""
    most = table.shape[1] * size
    if q.device.type == "cpu":
        rows = [
            attend_page_row(q[b : b + 1], k, v, table[b], scale, size, min(n + 1, most))
            for b, n in enumerate(positions.tolist())
        ]
        return torch.cat(rows) if rows else torch.zeros_like(q)
    count = min(max(int(positions.max()) + 1, 1), most) if positions.numel() else 1
    seen = torch.arange(count, device=q.device) <= positions[:, None]
    places = torch.where(seen, page_places(table, size, count), 0)
    keys, values = (x[0][:, places].transpose(0, 1) for x in (k, v))
    return attend_masked(q, keys, values, scale, seen[:, None])


def attend_page_row(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, pages: torch.Tensor, scale: float,
    size: int, count: int, mask: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """queries [1, H, Q, D] over the first `count` positions in a row's pages, under a mask"""
    if count <= 0:
        first = mean_value(q, v[:, :, :1])
        return first.expand(q.shape).clone()
    places = page_places(pages, size, count)
    keys, values = k.index_select(2, places), v.index_select(2, places)
    if mask is None:
        return attend(q, keys, values, scale)
    return attend_masked(q, keys, values, scale, mask)


def attend_paged_prompts(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, rows: torch.Tensor,
    positions: torch.Tensor, scale: float, size: int,
) -> torch.Tensor:  # fmt: skip
    """token p over the positions 0 .. positions[p] of row rows[p]; a row's pages are read once"""
    mixed = torch.zeros_like(q)
    most = table.shape[1] * size
    for row in torch.unique(rows).tolist():
        own = (rows == row).nonzero()[:, 0]
        last = positions.index_select(0, own)
        count = min(int(last.max()) + 1, most)
        lost = last < 0
        mask = torch.arange(max(count, 0), device=q.device) <= last[:, None]
        found = attend_page_row(q.index_select(2, own), k, v, table[row], scale, size, count, mask)
        if bool(lost.any()):
            first = mean_value(q, v[:, :, :1])
            found = torch.where(lost[:, None], first, found)
        mixed.index_copy_(2, own, found)
    return mixed


def attend_with_sinks(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sinks: torch.Tensor, scale: float,
    mask: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """attention in which a logit for each query head joins the softmax and is dropped after it"""
    group = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = (q @ keys.mT).float() * scale
    scores = torch.where(mask[:, None], scores, -1e30)
    sink = sinks.float()[:, None, None].expand(*scores.shape[:-1], 1)
    weights = torch.cat((scores, sink), -1).softmax(-1)[..., :-1]
    return weights.to(v.dtype) @ values
