"""Attributes under a substitution: dimensions replaced, item numbers turned into axis numbers.

A generic function counts axes in shape items, a pack being one. When packs become lists of
dimensions, every attribute that holds such numbers is rewritten; the roles in the table say how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from linnet.diagnostics import InternalError
from linnet.dims import Dim
from linnet.ir.core import Attrs, Op, Value
from linnet.ir.table import OPS, AttrRole
from linnet.types import Subst, TensorType, expand_axes

# For each item of a shape, the axes it takes after the substitution.
Places = tuple[tuple[int, ...], ...]


def substitute_attrs(op: Op, subst: Subst) -> Attrs:
    """`op.attrs` as they are once `subst` has been applied to the types around them."""
    roles = OPS[op.kind].attrs
    if all(roles.get(name, "plain") == "plain" for name in op.attrs):
        return op.attrs
    changed = dict(op.attrs)
    for name, role in roles.items():
        changed[name] = _HANDLERS[role](op, name, subst)
    if op.kind == "contract":
        changed["inputs"], changed["output"] = _contract(op, subst)
    return MappingProxyType(changed)


def _places(op: Op, value: Value, subst: Subst) -> Places:
    if not isinstance(value.type, TensorType):
        raise InternalError("ir", f"`{op.kind}` has axes on {value.type}", op.span)
    return expand_axes(value.type.shape, subst)


def _flat(places: Places, items: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for item in items for axis in places[item])


def _plain(op: Op, name: str, subst: Subst) -> Any:
    return op.attrs[name]


def _dim(op: Op, name: str, subst: Subst) -> Any:
    dim = op.attrs[name]
    return subst.dim(dim) if isinstance(dim, Dim) else dim


def _args(op: Op, name: str, subst: Subst) -> Any:
    return tuple(map(subst.arg, op.attrs[name]))


def _axis(op: Op, name: str, subst: Subst) -> Any:
    (axis,) = _places(op, op.operands[0], subst)[op.attrs[name]]
    return axis


def _axes(op: Op, name: str, subst: Subst) -> Any:
    return _flat(_places(op, op.operands[0], subst), op.attrs[name])


def _placement(op: Op, name: str, subst: Subst) -> Any:
    return _flat(_places(op, op.results[0], subst), op.attrs[name])


def _slice(op: Op, name: str, subst: Subst) -> Any:
    bounds: list[tuple[Dim, ...] | None] = []
    for bound, axes in zip(op.attrs[name], _places(op, op.operands[0], subst), strict=True):
        bounds += (
            [None] * len(axes) if bound is None else [tuple(subst.dim(part) for part in bound)]
        )
    return tuple(bounds)


def _gather(op: Op, name: str, subst: Subst) -> Any:
    result = _places(op, op.results[0], subst)
    if name == "index_axes":
        return tuple(_flat(result, tuple(axes)) for axes in op.attrs[name])
    source: list[tuple[str, int]] = []
    for how, number in op.attrs[name]:
        source += [("axis", a) for a in result[number]] if how == "axis" else [(how, number)]
    return tuple(source)


def _contract(op: Op, subst: Subst) -> tuple[Any, Any]:
    """Each label becomes as many new ones as its item has dimensions."""
    new: dict[int, tuple[int, ...]] = {}
    count = 0
    for operand, labels in zip(op.operands, op.attrs["inputs"], strict=True):
        for label, axes in zip(labels, _places(op, operand, subst), strict=True):
            if label not in new:
                new[label] = tuple(range(count, count + len(axes)))
                count += len(axes)
    inputs = tuple(
        tuple(n for label in labels for n in new[label]) for labels in op.attrs["inputs"]
    )
    return inputs, tuple(n for label in op.attrs["output"] for n in new[label])


_HANDLERS: Mapping[AttrRole, Callable[[Op, str, Subst], Any]] = {
    "plain": _plain,
    "dim": _dim,
    "args": _args,
    "axis": _axis,
    "axes": _axes,
    "placement": _placement,
    "order": _axes,
    "gather": _gather,
    "contract": _plain,  # both attributes together, in `substitute_attrs`
    "slice": _slice,
}
