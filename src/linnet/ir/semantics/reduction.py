"""The meaning of operations that sum, scan or pick along axes.

The order inside a sum is free. Sums, products and running sums of f16 and bf16 are held in f32 and
rounded to the dtype once an element of the result; `contract` rounds each product to the dtype
first, as the multiplication it stands for does. Wider floats are summed in their own dtype. The
sign of a sum that is zero is not part of the meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.ir.semantics.model import Array, Call, meaning
from linnet.ir.semantics.rounding import narrow, widen
from linnet.types import DType

# Products held at once by a contraction that has to round each of them.
_PRODUCTS_AT_ONCE = 1 << 22


@meaning("reduce")
def _reduce(call: Call) -> Any:
    axes = call.attrs["axes"]
    if not axes:
        return call.operands[0]
    x = widen(call.operands[0], call.dtype)
    match call.attrs["op"]:
        case "sum":
            return narrow(np.sum(x, axis=axes, dtype=x.dtype), call.dtype)
        case "prod":
            return narrow(np.prod(x, axis=axes, dtype=x.dtype), call.dtype)
        case "any":
            return np.any(x, axis=axes)
        case "all":
            return np.all(x, axis=axes)
        case "max":
            return narrow(_extreme(call, x, np.max), call.dtype)
        case _:
            return narrow(_extreme(call, x, np.min), call.dtype)


def _extreme(call: Call, x: Array, pick: Callable[..., Any]) -> Any:
    axes = call.attrs["axes"]
    if x.size == 0:
        kept = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
        if 0 in kept:
            return np.empty(kept, x.dtype)
        raise call.error(f"the {call.attrs['op']} of no elements has no value")
    return pick(x, axis=axes)


@meaning("cumsum")
def _cumsum(call: Call) -> Any:
    x = widen(call.operands[0], call.dtype)
    return narrow(np.cumsum(x, axis=call.attrs["axis"], dtype=x.dtype), call.dtype)


@meaning("contract")
def _contract(call: Call) -> Any:
    a, b = call.operands
    (left, right), output = call.attrs["inputs"], call.attrs["output"]
    if call.dtype not in (DType.F16, DType.BF16):
        return _einsum(a, left, b, right, output)
    extents = dict(zip((*left, *right), (*a.shape, *b.shape), strict=True))
    total = 1
    for extent in extents.values():
        total *= extent
    if total <= _PRODUCTS_AT_ONCE or not output:
        return _rounded_products(call.dtype, a, left, b, right, output)
    # Too many products to hold: one position of the first result axis at a time.
    first, rest = output[0], tuple(output[1:])
    parts = [
        _rounded_products(call.dtype, *_pick(a, left, first, at), *_pick(b, right, first, at), rest)
        for at in range(extents[first])
    ]
    return np.stack(parts)


Labels = tuple[int, ...]


def _pick(x: Array, labels: Labels, label: int, at: int) -> tuple[Array, Labels]:
    """`x` at one position of `label`, or as it is when it has no such axis."""
    if label not in labels:
        return x, labels
    axis = labels.index(label)
    return np.take(x, at, axis=axis), (*labels[:axis], *labels[axis + 1 :])


def _rounded_products(
    dtype: DType, a: Array, left: Labels, b: Array, right: Labels, output: Labels
) -> Array:
    every = tuple(dict.fromkeys((*output, *left, *right)))
    products = _spread(widen(a, dtype), left, every) * _spread(widen(b, dtype), right, every)
    rounded = widen(narrow(products, dtype), dtype)
    summed = tuple(range(len(output), len(every)))
    return narrow(np.sum(rounded, axis=summed, dtype=np.float32), dtype)


def _spread(x: Array, labels: Labels, every: Labels) -> Array:
    """`x` with its axes in the order of `every`, extent 1 where it lacks one."""
    order = sorted(range(len(labels)), key=lambda k: every.index(labels[k]))
    shape = [1] * len(every)
    for k in order:
        shape[every.index(labels[k])] = x.shape[k]
    return np.reshape(np.transpose(x, order), shape)


def _einsum(a: Array, left: Labels, b: Array, right: Labels, output: Labels) -> Array:
    number = {label: k for k, label in enumerate(dict.fromkeys((*left, *right)))}
    names = [[number[label] for label in labels] for labels in (left, right, output)]
    fast = a.dtype.kind == "f"  # through BLAS; integers have no such way
    result = np.einsum(a, names[0], b, names[1], names[2], optimize=fast)
    return np.asarray(result)
