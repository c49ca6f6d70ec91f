"""Sums of products, each product rounded to its dtype before it is added."""

from __future__ import annotations

import math

import torch

PRODUCT_BLOCK = 1 << 26  # products held at a time


def contract(
    a: torch.Tensor, b: torch.Tensor, left: list[int], right: list[int], output: list[int]
) -> torch.Tensor:
    """a, labelled `left`, times b, labelled `right`, summed over the labels `output` lacks"""
    summed = [label for label in dict.fromkeys((*left, *right)) if label not in output]
    x, y = (line_up(e, own, [*output, *summed]) for e, own in ((a, left), (b, right)))
    shape = torch.broadcast_shapes(x.shape, y.shape)  # type: ignore[no-untyped-call]
    if not output or math.prod(shape) <= PRODUCT_BLOCK:
        return sum_products(x, y, len(summed))
    x, y = x.expand(shape), y.expand(shape)
    return torch.stack([sum_products(x[k], y[k], len(summed)) for k in range(shape[0])])


def sum_products(x: torch.Tensor, y: torch.Tensor, count: int) -> torch.Tensor:
    """x * y summed over the last `count` axes"""
    product = x * y
    if count == 0:
        return product
    dims = tuple(range(-count, 0))
    if product.is_floating_point():
        return product.sum(dims, dtype=torch.promote_types(x.dtype, torch.float32)).to(x.dtype)
    return product.sum(dims, dtype=x.dtype)


def line_up(x: torch.Tensor, labels: list[int], order: list[int]) -> torch.Tensor:
    """x, whose axes carry `labels`, as a view with an axis for each label of `order`"""
    own = [label for label in order if label in labels]
    x = x.permute([labels.index(label) for label in own])
    return x[tuple(slice(None) if label in labels else None for label in order)]
