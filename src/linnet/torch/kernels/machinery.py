"""What generated modules need around their arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

PREPARED: dict[Any, Any] = {}  # results that no input changes; emptied when a weight does


def prepared(function: Callable[..., Any], *block: Any) -> Any:
    """function(*block), worked out once"""
    key = (function, *block)
    if key not in PREPARED:
        PREPARED[key] = function(*block)
    return PREPARED[key]


class WithGradient(torch.autograd.Function):
    """A function whose gradient another one gives"""

    @staticmethod
    def forward(ctx: Any, forward: Any, backward: Any, *arguments: Any) -> Any:
        result = forward(*arguments)
        ctx.backward = backward
        ctx.tensor_at = [k for k, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
        ctx.others = [None if isinstance(a, torch.Tensor) else a for a in arguments]
        ctx.save_for_backward(*(arguments[k] for k in ctx.tensor_at), result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        *tensors, result = ctx.saved_tensors
        arguments = list(ctx.others)
        for k, tensor in zip(ctx.tensor_at, tensors, strict=True):
            arguments[k] = tensor
        given = ctx.backward(*arguments, result, gradient)
        given = iter(given if isinstance(given, tuple) else (given,))
        floats = [isinstance(a, torch.Tensor) and a.is_floating_point() for a in arguments]
        return None, None, *(next(given, None) if is_float else None for is_float in floats)


def with_gradient(forward: Callable[..., Any], backward: Callable[..., Any], *given: Any) -> Any:
    """forward(*given), differentiated by backward(*given, result, its gradient)"""
    return WithGradient.apply(forward, backward, *given)  # type: ignore[no-untyped-call]
