"""Rules of operations that move elements, and of those that sum or scan along axes."""

from __future__ import annotations

from itertools import pairwise

from linnet.dims import Dim, floordiv
from linnet.ir.shape_rules.case import Case, check_dtype, rule
from linnet.types import PackVar, ShapeItem, Type

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")


def _numbers(case: Case, name: str, below: int) -> tuple[int, ...]:
    """The attribute `name`: a tuple of item numbers under `below`."""
    value = case.attrs[name]
    if not isinstance(value, tuple):
        raise case.fail(f"`{name}` is {value!r}, not a tuple")
    return tuple(case.axis(item, below) for item in value)


@rule("broadcast")
def _broadcast(case: Case) -> tuple[Type, ...]:
    x, result = case.tensor(0), case.hinted_tensor
    axes = _numbers(case, "axes", len(result.shape))
    if len(axes) != len(x.shape) or any(a >= b for a, b in pairwise(axes)):
        raise case.fail(f"`axes` {axes} does not place the items of {x}")
    for item, axis in zip(x.shape, axes, strict=True):
        to = result.shape[axis]
        repeats = item == Dim.of(1) and isinstance(to, Dim)
        if not repeats and not case.same_item(item, to):
            raise case.fail(f"{x} does not repeat to {result} over {axes}")
    if x.dtype != result.dtype:
        raise case.fail(f"keeps the dtype of {x}, not {result.dtype}")
    return (result,)


@rule("reshape")
def _reshape(case: Case) -> tuple[Type, ...]:
    x, result = case.tensor(0), case.hinted_tensor
    if x.dtype != result.dtype:
        raise case.fail(f"keeps the dtype of {x}, not {result.dtype}")
    if not case.same_item(x.element_count, result.element_count):
        raise case.fail(f"{x} and {result} do not provably hold as many elements")
    return (result,)


@rule("permute")
def _permute(case: Case) -> tuple[Type, ...]:
    x = case.tensor(0)
    order = _numbers(case, "order", len(x.shape))
    if sorted(order) != list(range(len(x.shape))):
        raise case.fail(f"`order` {order} is not an order of the items of {x}")
    return (x.with_shape(tuple(x.shape[axis] for axis in order)),)


@rule("concat")
def _concat(case: Case) -> tuple[Type, ...]:
    if not case.operands:
        raise case.fail("takes at least one operand")
    first = case.tensor(0)
    axis = case.axis(case.attrs["axis"], len(first.shape))
    total = case.dims_at(first.shape, axis)
    for k in range(1, len(case.operands)):
        other = case.tensor(k)
        beside = (*first.shape[:axis], *other.shape[axis : axis + 1], *first.shape[axis + 1 :])
        if other.dtype != first.dtype or not case.same_shape(other.shape, beside):
            raise case.fail(f"{other} does not fit beside {first} along {axis}")
        total = total + case.dims_at(other.shape, axis)
    return (first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :])),)


@rule("slice")
def _slice(case: Case) -> tuple[Type, ...]:
    x, bounds = case.tensor(0), case.attrs["bounds"]
    if not isinstance(bounds, tuple) or len(bounds) != len(x.shape):
        raise case.fail(f"`bounds` has not one entry for each item of {x}")
    items: list[ShapeItem] = []
    for axis, bound in enumerate(bounds):
        if bound is None:
            items.append(x.shape[axis])
            continue
        case.dims_at(x.shape, axis)
        if not (isinstance(bound, tuple) and len(bound) == 3 and all(map(_is_dim, bound))):
            raise case.fail(f"bound {bound!r} is not (start, stop, step)")
        items.append(slice_extent(*bound))
    return (x.with_shape(tuple(items)),)


def _is_dim(value: object) -> bool:
    return isinstance(value, Dim)


def slice_extent(start: Dim, stop: Dim, step: Dim) -> Dim:
    """How many positions `start`, `start + step`, ... below `stop` there are."""
    if step == Dim.of(1):
        return stop - start
    return floordiv(stop - start + step - Dim.of(1), step)


@rule("gather")
def _gather(case: Case) -> tuple[Type, ...]:
    x, source, index_axes = case.tensor(0), case.attrs["source"], case.attrs["index_axes"]
    if len(source) != len(x.shape) or len(index_axes) != len(case.operands) - 1:
        raise case.fail(f"`source` and `index_axes` do not fit {x} and its indices")
    found: dict[int, ShapeItem] = {}
    for k, axes in enumerate(index_axes):
        index = case.tensor(1 + k)
        check_dtype(case, index.dtype, "integer")
        if len(axes) != len(index.shape):
            raise case.fail(f"`index_axes` {axes} does not fit {index}")
        for axis, item in zip(axes, index.shape, strict=True):
            _meet(case, found, axis, item)
    for item, (how, number) in zip(x.shape, source, strict=True):
        if how == "axis":
            _meet(case, found, number, item)
        elif how != "index" or not 0 <= number < len(index_axes) or isinstance(item, PackVar):
            raise case.fail(f"`source` has no ({how!r}, {number}) for {item}")
    if sorted(found) != list(range(len(found))):
        raise case.fail("a result item occurs nowhere")
    return (x.with_shape(tuple(found[axis] for axis in range(len(found)))),)


def _meet(case: Case, found: dict[int, ShapeItem], axis: int, item: ShapeItem) -> None:
    """Item `axis` has extent `item`, here as everywhere else it occurs."""
    before = found.setdefault(axis, item)
    if not case.same_item(before, item):
        raise case.fail(f"item {axis} has extents {before} and {item}")


@rule("reduce")
def _reduce(case: Case) -> tuple[Type, ...]:
    x, op = case.tensor(0), case.attrs["op"]
    if op not in REDUCTIONS:
        raise case.fail(f"there is no reduction `{op}`")
    check_dtype(case, x.dtype, "bool" if op in ("any", "all") else "numeric")
    axes = _numbers(case, "axes", len(x.shape))
    if len(set(axes)) != len(axes):
        raise case.fail(f"`axes` {axes} names an item twice")
    return (x.with_shape(tuple(d for k, d in enumerate(x.shape) if k not in axes)),)


@rule("contract")
def _contract(case: Case) -> tuple[Type, ...]:
    a, b = case.tensor(0), case.tensor(1)
    check_dtype(case, a.dtype)
    if a.dtype != b.dtype:
        raise case.fail(f"takes operands of one dtype, not {a.dtype} and {b.dtype}")
    extents: dict[int, ShapeItem] = {}
    for type_, labels in zip((a, b), case.attrs["inputs"], strict=True):
        if len(labels) != len(type_.shape) or len(set(labels)) != len(labels):
            raise case.fail(f"labels {labels} do not fit {type_}")
        for label, item in zip(labels, type_.shape, strict=True):
            _meet(case, extents, label, item)
    output = case.attrs["output"]
    if len(set(output)) != len(output) or not set(output) <= set(extents):
        raise case.fail(f"`output` {output} is not among the labels")
    return (a.with_shape(tuple(extents[label] for label in output)),)


@rule("cumsum")
def _cumsum(case: Case) -> tuple[Type, ...]:
    x = case.tensor(0)
    check_dtype(case, x.dtype)
    case.dims_at(x.shape, case.axis(case.attrs["axis"], len(x.shape)))
    return (x,)
