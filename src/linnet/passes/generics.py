"""Values for generics: what is given, checked against what is declared and against `where`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from linnet.dims import Dim, Relation
from linnet.ir import Generic
from linnet.types import (
    DTYPES,
    KIND_DTYPES,
    DType,
    DTypeVar,
    GenericArg,
    PackVar,
    Subst,
    render_arg,
)

MAX_SIZE = (1 << 63) - 1

BoundValue = int | str | DType | tuple[int, ...] | list[int]


class BindError(ValueError):
    """A model cannot be bound; `problems` holds every reason, `str()` all of them."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def check_generics(
    owner: str, declared: tuple[Generic, ...], given: Mapping[str, BoundValue]
) -> tuple[GenericArg, ...]:
    """An argument for each declared generic, from `given` or its default."""
    names = [generic.name for generic in declared]
    problems = [
        f"`{owner}` has no generic `{name}`; it has {_listing(names)}"
        for name in given
        if name not in names
    ]
    pairs: dict[Any, GenericArg] = {}
    return collected(declared, lambda g: _argument(owner, g, given, pairs), pairs, problems)


def collected(
    declared: Iterable[Generic],
    argument: Callable[[Generic], GenericArg],
    pairs: dict[Any, GenericArg],
    problems: Sequence[str] = (),
) -> tuple[GenericArg, ...]:
    """`argument` of each generic, entered into `pairs` for the next one's default. Raises
    `BindError` with `problems` and every one that it raises."""
    args: list[GenericArg] = []
    found = list(problems)
    for generic in declared:
        try:
            arg = argument(generic)
        except BindError as error:
            found.extend(error.problems)
            continue
        pairs[generic.var] = arg
        args.append(arg)
    if found:
        raise BindError(*found)
    return tuple(args)


def _argument(
    owner: str,
    generic: Generic,
    given: Mapping[str, BoundValue],
    before: Mapping[Any, GenericArg],
) -> GenericArg:
    if generic.name in given:
        return concrete(owner, generic, given[generic.name], _shown, MAX_SIZE)
    if generic.default is None:
        raise BindError(f"the generic `{generic.name}: {generic.kind}` of `{owner}` is missing")
    return Subst.of(dict(before)).arg(generic.default)


def concrete(
    owner: str, generic: Generic, value: object, shown: Callable[[object], str], largest: int
) -> GenericArg:
    """A value that somebody gives for a generic of `owner`: a dtype, a list of sizes or a size up
    to `largest`. Raises `BindError`, in which `shown` is how the value reads."""
    name = f"`{generic.name}` of `{owner}`"
    match generic.var:
        case DTypeVar(kind=kind):
            dtype = DTYPES.get(value) if isinstance(value, str) else value
            if isinstance(dtype, DType) and dtype in KIND_DTYPES[kind]:
                return dtype
            names = _listing([d.value for d in DType if d in KIND_DTYPES[kind]])
            raise BindError(f"{name} takes a dtype out of {names}, not {shown(value)}")
        case PackVar():
            if not isinstance(value, tuple | list):
                raise BindError(f"{name} takes a list of sizes, not {shown(value)}")
            return tuple(_size(name, item, shown, largest) for item in value)
        case _:
            return _size(name, value, shown, largest)


def _size(name: str, value: object, shown: Callable[[object], str], largest: int) -> Dim:
    if isinstance(value, Dim):
        if value.constant is None:
            return value
        value = value.constant
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise BindError(f"{name} takes an integer, not {shown(value)}")
    size = int(value.__index__())
    if not 0 <= size <= largest:
        raise BindError(f"{name} is {shown(size)}, which is no size from 0 to {largest}")
    return Dim.of(size)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listing(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def plain_value(arg: GenericArg) -> int | DType | tuple[int, ...]:
    """A concrete argument as the value a person gives."""
    match arg:
        case DType():
            return arg
        case Dim():
            return size_of(arg)
        case tuple():
            return tuple(size_of(item) for item in arg if isinstance(item, Dim))
        case _:
            raise BindError(f"`{arg}` is not bound to a dtype")


def size_of(dim: Dim) -> int:
    """The number a concrete dimension is."""
    if dim.constant is None:
        raise BindError(f"the size `{dim}` is not known")
    return dim.constant


def check_where(
    owner: str,
    generics: tuple[Generic, ...],
    args: tuple[GenericArg, ...],
    where: tuple[Relation, ...],
    subst: Subst,
) -> None:
    """Raises `BindError` naming each clause that the arguments break."""
    broken = [clause for clause in where if not _holds(subst.relation(clause))]
    if not broken:
        return
    given = ", ".join(
        f"{g.name} = {render_arg(arg)}" for g, arg in zip(generics, args, strict=True)
    )
    raise BindError(
        *(f"`{owner}` needs `{clause}`, which does not hold with {given}" for clause in broken)
    )


def _holds(clause: Relation) -> bool:
    sides = (clause.left.constant, clause.right.constant)
    return None not in sides and clause.evaluate({})  # a division by zero stays symbolic
