"""Generic arguments from the shapes and dtypes of concrete inputs, for the evaluator.

Deliberately plain, and apart from the checker's unification: shapes are matched item by item, then
what is left is solved where one unknown stands in a linear place; at the end every declared shape
is worked out again and compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linnet.dims import Dim, DimError, Symbol
from linnet.ir.core import Function, Generic, GenericVar
from linnet.ir.semantics.model import NUMPY, EvaluationError, Some
from linnet.types import (
    DTYPES,
    DType,
    DTypeVar,
    GenericArg,
    OptionalType,
    PackVar,
    Shape,
    StructType,
    Subst,
    TensorType,
    TupleType,
    Type,
)

GenericValue = int | str | DType | Sequence[int] | GenericArg


def generic_arg(generic: Generic, value: Any) -> GenericArg:
    """A value a caller gave for a generic, as the argument types mention."""
    if isinstance(generic.var, DTypeVar):
        dtype = DTYPES.get(value) if isinstance(value, str) else value
        if not isinstance(dtype, DType):
            raise EvaluationError(f"`{generic.name}` takes a dtype, not {value!r}")
        return dtype
    if isinstance(generic.var, PackVar):
        return tuple(Dim.of(item) for item in value)
    return Dim.of(value)


def bind_generics(
    function: Function,
    inputs: Sequence[Any],
    given: Mapping[str, Any],
    outer: Mapping[GenericVar, GenericArg],
) -> tuple[GenericArg, ...]:
    """An argument for each generic: from `outer` (the block's), `given`, the inputs, defaults."""
    known: dict[GenericVar, GenericArg] = {}
    for generic in function.generics:
        if generic.name in given:
            known[generic.var] = generic_arg(generic, given[generic.name])
        elif generic.var in outer:
            known[generic.var] = outer[generic.var]
    pairs: list[tuple[Dim, int]] = []
    for param, value in zip(function.params, inputs, strict=True):
        _match(param.type, value, known, pairs)
    _solve(pairs, known)
    for generic in function.generics:
        if generic.var not in known:
            if generic.default is None:
                raise EvaluationError(f"`{function.name}` does not get its `{generic.name}`")
            known[generic.var] = Subst.of(known).arg(generic.default)
    return tuple(known[generic.var] for generic in function.generics)


def _match(
    type_: Type, value: Any, known: dict[GenericVar, GenericArg], pairs: list[tuple[Dim, int]]
) -> None:
    match type_:
        case TensorType(shape, dtype):
            if isinstance(dtype, DTypeVar):
                known.setdefault(dtype, _dtype_of(value))
            _match_shape(shape, value.shape, known, pairs)
        case TupleType(items):
            for inner, item in zip(items, value, strict=True):
                _match(inner, item, known, pairs)
        case StructType(fields=fields):
            for name, inner in fields:
                _match(inner, value[name], known, pairs)
        case OptionalType(inner):
            if isinstance(value, Some):
                _match(inner, value.value, known, pairs)
        case _:
            pass


def _dtype_of(array: Any) -> DType:
    return next(dtype for dtype, numpy in NUMPY.items() if numpy == array.dtype)


def _match_shape(
    shape: Shape,
    extents: tuple[int, ...],
    known: dict[GenericVar, GenericArg],
    pairs: list[tuple[Dim, int]],
) -> None:
    """Items from the left, then from the right, so that one unknown pack takes the middle."""
    items, rest = list(shape), list(extents)
    for end in (0, -1):
        while items and not _unknown_pack(items[end], known):
            item = items.pop(end)
            bound = known.get(item) if isinstance(item, PackVar) else None
            width = len(bound) if isinstance(bound, tuple) else 1
            if len(rest) < width:
                raise EvaluationError(f"a tensor of shape {list(extents)} has too few axes")
            for _ in range(width):
                extent = rest.pop(end)
                if isinstance(item, Dim):
                    pairs.append((item, extent))
    if len(items) == 1 and isinstance(items[0], PackVar):
        known[items[0]] = tuple(map(Dim.of, rest))
    elif items or rest:
        raise EvaluationError(f"a tensor of shape {list(extents)} does not fit {list(shape)}")


def _unknown_pack(item: Dim | PackVar, known: Mapping[GenericVar, GenericArg]) -> bool:
    return isinstance(item, PackVar) and item not in known


def _solve(pairs: list[tuple[Dim, int]], known: dict[GenericVar, GenericArg]) -> None:
    """Binds symbols from `dim == extent` wherever one is left in a linear place."""
    progress = True
    while progress:
        progress = False
        subst = Subst.of(known)
        for dim, extent in pairs:
            left = subst.dim(dim)
            unknown = list(left.symbols)
            if len(unknown) != 1:
                continue
            value = _root(left, unknown[0], extent)
            if value is not None:
                known[unknown[0]] = Dim.of(value)
                progress = True
                break


def _root(dim: Dim, symbol: Symbol, target: int) -> int | None:
    """The natural number at which the linear `dim` is `target`."""
    try:
        zero, one, two = (dim.evaluate({symbol: k}) for k in (0, 1, 2))
    except DimError:
        return None
    slope = one - zero
    if slope == 0 or two - one != slope:
        return None
    value, rest = divmod(target - zero, slope)
    if rest or value < 0 or dim.evaluate({symbol: value}) != target:
        return None
    return value
