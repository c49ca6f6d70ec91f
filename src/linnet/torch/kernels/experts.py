"""Products with chosen experts: rows sorted by expert, each chosen expert's weight read once."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def by_expert(
    rows: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor, copies: int
) -> torch.Tensor:
    """row n // copies of `rows` by expert experts[n]: [N, Out]"""
    order = experts.argsort()
    made = rows.new_zeros(experts.shape[0], weight.shape[1])
    at = 0
    for expert, count in enumerate(experts.bincount(minlength=weight.shape[0]).tolist()):
        if count:
            own = order[at : at + count]
            made[own] = F.linear(rows[own // copies], weight[expert])
            at += count
    return made


def linear_experts(
    x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor
) -> torch.Tensor:
    """each row's K inputs [R, K, In] by its K experts: [R, K, Out]"""
    made = by_expert(x.flatten(0, 1), weight, experts.flatten(), 1)
    return made.unflatten(0, experts.shape)


def linear_experts_shared(
    x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor
) -> torch.Tensor:
    """each row's one input [R, In] by its K experts: [R, K, Out]"""
    made = by_expert(x, weight, experts.flatten(), max(experts.shape[1], 1))
    return made.unflatten(0, experts.shape)


def combine_experts(
    x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """each row's K inputs by its K experts, summed by weight in f32: [R, Out]"""
    made = linear_experts(x, weight, experts).float()
    return (weights.float()[:, None] @ made)[:, 0].to(x.dtype)
