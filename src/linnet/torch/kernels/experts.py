"""Products with chosen experts: rows sorted by expert, each chosen expert's weight read once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812


def by_expert(
    rows: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor, copies: int
) -> torch.Tensor:
    """row n // copies of `rows` by expert experts[n]: [N, Out]"""
    matrices = expert_matrices(weight)
    if rows.shape[0] == 1:  # one row: each of its experts has it alone
        made = [F.linear(rows, matrices[expert]) for expert in experts.tolist()]
        return torch.cat(made) if made else rows.new_zeros(0, weight.shape[1])
    order = experts.argsort()
    sorted_rows = rows[order // copies]
    parts, at = [], 0
    for expert, count in enumerate(experts.bincount(minlength=weight.shape[0]).tolist()):
        if count:
            parts.append(F.linear(sorted_rows[at : at + count], matrices[expert]))
            at += count
    if not parts:
        return rows.new_zeros(0, weight.shape[1])
    return torch.cat(parts)[order.argsort()]


def expert_matrices(weight: torch.Tensor) -> Sequence[torch.Tensor]:
    """the experts' matrices; for a gradient all at once, or each would make one of every expert"""
    return weight.unbind(0) if weight.requires_grad else weight  # type: ignore[return-value]


def linear_experts(x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    """each row's K inputs [R, K, In] by its K experts: [R, K, Out]"""
    rows, flat = x.flatten(0, 1), experts.flatten()
    if x.shape[0] == 1:
        matrices = expert_matrices(weight)
        made = [F.linear(rows[n : n + 1], matrices[e]) for n, e in enumerate(flat.tolist())]
        if made:
            return torch.cat(made)[None]
    return by_expert(rows, weight, flat, 1).unflatten(0, experts.shape)  # type: ignore[no-any-return, no-untyped-call]


def linear_experts_shared(
    x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor
) -> torch.Tensor:
    """each row's one input [R, In] by its K experts: [R, K, Out]"""
    made = by_expert(x, weight, experts.flatten(), max(experts.shape[1], 1))
    return made.unflatten(0, experts.shape)  # type: ignore[no-any-return, no-untyped-call]


def combine_experts(
    x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """each row's K inputs by its K experts, summed by weight in f32: [R, Out]"""
    made = linear_experts(x, weight, experts).float()
    return (weights.float()[:, None] @ made)[:, 0].to(x.dtype)


def combine_experts_wide(
    x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """combine_experts without rounding the products: an expert's weight at a time in f32"""
    rows, flat = x.flatten(0, 1).float(), experts.flatten()
    order, matrices = flat.argsort(), expert_matrices(weight)
    parts, at = [], 0
    for expert, count in enumerate(flat.bincount(minlength=weight.shape[0]).tolist()):
        if count:
            parts.append(F.linear(rows[order[at : at + count]], matrices[expert].float()))
            at += count
    if not parts:
        return x.new_zeros(x.shape[0], weight.shape[1])
    made = torch.cat(parts)[order.argsort()].reshape(*experts.shape, -1)
    return (weights.float()[:, None] @ made)[:, 0].to(x.dtype)


def top_k(x: torch.Tensor, count: int) -> torch.Tensor:
    """the places of the largest values of each row, the lower place first among equals"""
    size = x.shape[-1]
    if x.element_size() == 4 and x.device.type == "cpu" and not torch.compiler.is_compiling():
        best = x.topk(min(count + 1, size))
        if not (best.values[:, 1:] == best.values[:, :-1]).any():  # equals are rare in f32
            return best.indices[:, :count]
    return ordered_keys(x).topk(count).indices


def ordered_keys(x: torch.Tensor) -> torch.Tensor:
    """integers in the order of the values, no two of a row alike: a value's bits, which for a
    negative one count down, and below them its place from the end"""
    narrow = x.element_size() == 2 and x.shape[-1] <= 1 << 16
    bits, sign = (torch.int16, 15) if narrow else (torch.int32, 31)
    wide = torch.int32 if narrow else torch.int64
    plain = ((x if narrow else x.float()) + 0.0).view(bits)  # + 0.0: no zero below another
    ordered = (plain >> sign).bitwise_and_((1 << sign) - 1).bitwise_xor_(plain)
    places = torch.arange(x.shape[-1] - 1, -1, -1, device=x.device, dtype=wide)
    return torch.add(places, ordered.to(wide), alpha=1 << (sign + 1))
