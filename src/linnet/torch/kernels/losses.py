"""Losses over a vocabulary, by blocks: the whole logits are never held."""

from __future__ import annotations

from typing import Any

import torch


def log_probs(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """log p(targets[n]) under softmax(logits[n]), in f32"""
    wide = logits.float()
    return wide.gather(1, targets[:, None])[:, 0] - torch.logsumexp(wide, 1)


LOGIT_BLOCK = 1 << 22  # logits held at a time


class LinearLogProbs(torch.autograd.Function):
    """log_probs(hidden weight^T, targets) with f32 logits, made by blocks and again backward"""

    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, targets: Any) -> Any:
        total = torch.full((hidden.shape[0],), -torch.inf, device=hidden.device)
        picked = torch.zeros_like(total)
        for start, part in vocabulary_blocks(weight):
            for rows in row_blocks(hidden, part):
                logits = hidden[rows].float() @ part.mT
                total[rows] = torch.logaddexp(total[rows], torch.logsumexp(logits, 1))
                own = targets[rows] - start
                inside = (own >= 0) & (own < part.shape[0])
                found = logits.gather(1, torch.where(inside, own, 0)[:, None])[:, 0]
                picked[rows] += torch.where(inside, found, 0.0)
        ctx.save_for_backward(hidden, weight, targets, total)
        return picked - total

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        hidden, weight, targets, total = ctx.saved_tensors
        to_hidden = torch.zeros_like(hidden, dtype=torch.float32)
        to_weight = torch.zeros_like(weight)
        for start, part in vocabulary_blocks(weight):
            piece = torch.zeros_like(part)
            for rows in row_blocks(hidden, part):
                wide = hidden[rows].float()
                slope = -torch.exp(wide @ part.mT - total[rows, None]) * gradient[rows, None]
                own = targets[rows] - start
                inside = (own >= 0) & (own < part.shape[0])
                share = torch.where(inside, gradient[rows], 0.0)
                slope.scatter_add_(1, torch.where(inside, own, 0)[:, None], share[:, None])
                to_hidden[rows] += slope @ part
                piece += slope.mT @ wide
            to_weight[start : start + part.shape[0]] = piece
        return to_hidden.to(hidden.dtype), to_weight, None


def vocabulary_blocks(weight: torch.Tensor) -> Any:
    """(first row, rows in f32) of the output head"""
    step = max(1, LOGIT_BLOCK // max(weight.shape[1], 1))
    for start in range(0, weight.shape[0], step):
        yield start, weight[start : start + step].float()


def row_blocks(hidden: torch.Tensor, part: torch.Tensor) -> Any:
    """slices of the positions whose logits are made together"""
    step = max(1, LOGIT_BLOCK // max(part.shape[0], 1))
    for start in range(0, hidden.shape[0], step):
        yield slice(start, start + step)


def linear_log_probs(
    hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """log p(targets[n]) under softmax(hidden[n] weight^T)"""
    if targets.device.type == "cpu" and targets.numel():
        low, high = torch.stack(targets.aminmax()).tolist()
        if low < 0 or high >= weight.shape[0]:
            raise IndexError(f"a target lies outside the vocabulary's {weight.shape[0]} rows")
    return LinearLogProbs.apply(hidden, weight, targets)  # type: ignore[no-any-return, no-untyped-call]
